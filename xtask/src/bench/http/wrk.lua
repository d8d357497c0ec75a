-- Requests for the hosts of a file, in turn: `wrk … -- HOSTS METHOD PATH BODY-BYTES`. Each has a number of its own as its
-- query: requests alike would be one string, which stays in the processor's cache while those of many hosts do not.
-- Prints one line of numbers: requests, nanoseconds, errors, and the times that half and 99 % of them took.

local requests, at = {}, 0

function init(arguments)
  local body
  local bytes = tonumber(arguments[4])
  if bytes > 0 then body = string.rep("u", bytes) end
  for host in io.lines(arguments[1]) do
    requests[#requests + 1] = wrk.format(arguments[2], arguments[3] .. "?" .. #requests, { ["Host"] = host }, body)
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("sluice: %.0f %.0f %.0f %.0f %.0f\n", summary.requests, summary.duration * 1000, failed,
    latency:percentile(50) * 1000, latency:percentile(99) * 1000))
end
