/* Lets a test set the system's clock for one process, while it runs.

   Preloaded into a server. The first eight bytes of the file that SYSTEM_CLOCK names are how many seconds its clock is
   ahead; the test writes them, and the process sees them at once. Clocks that nobody can set are left alone. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t none = 0;
static volatile int64_t *ahead;
static int (*really)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    really = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("SYSTEM_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = file < 0 ? MAP_FAILED : mmap(0, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
    ahead = page == MAP_FAILED ? &none : (volatile int64_t *)page;
    if (file >= 0) close(file);
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    if (!really) begin();
    int failed = really(clock, at);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += *ahead;
    return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
