"""Loads an XDP program, whose instructions are the second argument in hexadecimal, and pins it as the first."""
import ctypes, sys
instructions = bytes.fromhex(sys.argv[2])
code = ctypes.create_string_buffer(instructions)
license = ctypes.create_string_buffer(b'GPL')
load = ctypes.create_string_buffer(128)
ctypes.memmove(load, (ctypes.c_uint32 * 2)(6, len(instructions) // 8), 8)
ctypes.memmove(ctypes.addressof(load) + 8, (ctypes.c_uint64 * 2)(ctypes.addressof(code), ctypes.addressof(license)), 16)
bpf = ctypes.CDLL(None, use_errno=True).syscall
program = bpf(321, 5, load, 128)
path = ctypes.create_string_buffer(sys.argv[1].encode())
pin = ctypes.create_string_buffer(24)
ctypes.memmove(pin, (ctypes.c_uint64 * 1)(ctypes.addressof(path)), 8)
ctypes.memmove(ctypes.addressof(pin) + 8, (ctypes.c_uint32 * 1)(program), 4)
sys.exit(bpf(321, 6, pin, 24) and ctypes.get_errno())
