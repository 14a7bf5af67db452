/* Records what processes do to the files of their store, in order, so that a test can undo what was never synced.

   Preloaded into a writer, and so into the process that commits for it. Each has a file of records, since either may be
   killed while it writes one; their order is told by a counter that they share. Each record: kind, file, place in the
   order, offset, length (a byte, a byte, three 64-bit numbers), then that many bytes of data for what is written. Kinds: W
   write, T truncate, B a sync begins, E it has ended, A words on standard output, U the file is removed. The number of a
   sync stands in its offset. What was done is recorded afterwards, and that a sync begins before it does: so a sync that
   has ended has made last all that is recorded before its beginning. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#define FILES 4096
#define OUTPUT 255

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static unsigned char known[FILES]; /* 0: not ours; else the file's number plus one */
static int record = -1;
static uint64_t *places; /* how many records all processes have made */
static pid_t here;
static uint64_t syncs;

static void *next_of(const char *name) { return dlsym(RTLD_NEXT, name); }

__attribute__((constructor)) static void begin(void) {
    int (*opening)(const char *, int, ...) = next_of("open64");
    int (*closing)(int) = next_of("close");
    int (*lengthening)(int, off64_t) = next_of("ftruncate64");
    const char *folder = getenv("POWER_RECORD");
    char path[4096];
    here = getpid();
    syncs = (uint64_t)here << 32;
    snprintf(path, sizeof path, "%s/places", folder);
    int counter = opening(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (counter < 0 || lengthening(counter, sizeof *places)) abort();
    places = mmap(NULL, sizeof *places, PROT_READ | PROT_WRITE, MAP_SHARED, counter, 0);
    if (places == MAP_FAILED) abort();
    closing(counter);
    snprintf(path, sizeof path, "%s/%d.record", folder, (int)here);
    record = opening(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (record < 0) abort();
}

static int number_of(const char *path) {
    size_t length = strlen(path);
    if (length >= 8 && !strcmp(path + length - 8, "store.db")) return 1;
    if (length >= 12 && !strcmp(path + length - 12, "store.db-wal")) return 2;
    return 0;
}

static void put(char kind, unsigned char file, uint64_t offset, uint64_t length, const void *data) {
    static ssize_t (*really)(int, const void *, size_t);
    if (!really) really = next_of("write");
    uint64_t place = __atomic_fetch_add(places, 1, __ATOMIC_SEQ_CST);
    unsigned char head[26] = {(unsigned char)kind, file};
    memcpy(head + 2, &place, 8);
    memcpy(head + 10, &offset, 8);
    memcpy(head + 18, &length, 8);
    if (really(record, head, sizeof head) != sizeof head) abort();
    if (data && length && really(record, data, length) != (ssize_t)length) abort();
}

static int opened(int descriptor, const char *path) {
    if (descriptor >= 0 && descriptor < FILES) known[descriptor] = number_of(path);
    return descriptor;
}

int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    int (*really)(const char *, int, ...) = next_of("open64");
    return opened(really(path, flags, mode), path);
}

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    int (*really)(const char *, int, ...) = next_of("open");
    return opened(really(path, flags, mode), path);
}

int close(int descriptor) {
    /* A child that is about to become another program shares our memory, and closes what it has no use for. */
    if (getpid() == here && descriptor >= 0 && descriptor < FILES) known[descriptor] = 0;
    int (*really)(int) = next_of("close");
    return really(descriptor);
}

static unsigned char file_of(int descriptor) {
    return descriptor >= 0 && descriptor < FILES ? known[descriptor] : 0;
}

ssize_t pwrite64(int descriptor, const void *data, size_t length, off64_t offset) {
    ssize_t (*really)(int, const void *, size_t, off64_t) = next_of("pwrite64");
    if (!file_of(descriptor)) return really(descriptor, data, length, offset);
    pthread_mutex_lock(&turn);
    ssize_t written = really(descriptor, data, length, offset);
    if (written > 0) put('W', file_of(descriptor) - 1, (uint64_t)offset, (uint64_t)written, data);
    pthread_mutex_unlock(&turn);
    return written;
}

ssize_t pwrite(int descriptor, const void *data, size_t length, off_t offset) {
    return pwrite64(descriptor, data, length, offset);
}

ssize_t write(int descriptor, const void *data, size_t length) {
    ssize_t (*really)(int, const void *, size_t) = next_of("write");
    if (file_of(descriptor)) abort(); /* SQLite says where it writes */
    if (descriptor != STDOUT_FILENO) return really(descriptor, data, length);
    pthread_mutex_lock(&turn);
    ssize_t written = really(descriptor, data, length);
    if (written > 0) put('A', OUTPUT, 0, (uint64_t)written, data);
    pthread_mutex_unlock(&turn);
    return written;
}

int ftruncate64(int descriptor, off64_t length) {
    int (*really)(int, off64_t) = next_of("ftruncate64");
    pthread_mutex_lock(&turn);
    int failed = really(descriptor, length);
    if (!failed && file_of(descriptor)) put('T', file_of(descriptor) - 1, (uint64_t)length, 0, NULL);
    pthread_mutex_unlock(&turn);
    return failed;
}

int ftruncate(int descriptor, off_t length) { return ftruncate64(descriptor, length); }

static int synced(int descriptor, const char *name) {
    int (*really)(int) = next_of(name);
    unsigned char file = file_of(descriptor);
    if (!file) return really(descriptor);
    pthread_mutex_lock(&turn);
    uint64_t number = ++syncs;
    put('B', file - 1, number, 0, NULL);
    pthread_mutex_unlock(&turn);
    int failed = really(descriptor);
    pthread_mutex_lock(&turn);
    if (!failed) put('E', file - 1, number, 0, NULL);
    pthread_mutex_unlock(&turn);
    return failed;
}

int fsync(int descriptor) { return synced(descriptor, "fsync"); }

int fdatasync(int descriptor) { return synced(descriptor, "fdatasync"); }

int unlink(const char *path) {
    int (*really)(const char *) = next_of("unlink");
    pthread_mutex_lock(&turn);
    int failed = really(path);
    if (!failed && number_of(path)) put('U', (unsigned char)(number_of(path) - 1), 0, 0, NULL);
    pthread_mutex_unlock(&turn);
    return failed;
}
