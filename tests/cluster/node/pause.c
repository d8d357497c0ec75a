/* The first process of a pod: it keeps the pod's namespaces, and reaps what other processes of the pod leave. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void reap(int number)
{
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

static void end(int number)
{
    (void)number;
    _exit(EXIT_SUCCESS);
}

int main(void)
{
    signal(SIGCHLD, reap);
    signal(SIGINT, end);
    signal(SIGTERM, end);
    for (;;)
        pause();
}
