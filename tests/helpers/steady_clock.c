/* A clock that nobody sets, set by a test: adds the seconds in the file $STEADY_CLOCK to CLOCK_BOOTTIME. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time)
{
    static int (*next)(clockid_t, struct timespec *);
    if (!next)
        next = (int (*)(clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
    int result = next(clock, time);
    if (result == 0 && clock == CLOCK_BOOTTIME) {
        const char *name = getenv("STEADY_CLOCK");
        FILE *file = name ? fopen(name, "r") : NULL;
        long ahead = 0;
        if (file) {
            if (fscanf(file, "%ld", &ahead) == 1)
                time->tv_sec += ahead;
            fclose(file);
        }
    }
    return result;
}
