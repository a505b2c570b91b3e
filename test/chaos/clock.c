/*
 * Moves the clock of a program into which it is preloaded. The file that CLOCK_OFFSET_FILE names holds the offset in seconds, as eight bytes in this
 * machine's order. It calls the kernel directly, so that an allocator may read the time before any other library is loaded (which is why libfaketime
 * and jemalloc do not work together).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset;

__attribute__((constructor)) static void open_offset(void) {
  const char *path = getenv("CLOCK_OFFSET_FILE");
  int file = path == NULL ? -1 : open(path, O_RDONLY);
  if (file < 0) return;
  void *map = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
  if (map != MAP_FAILED) offset = map;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && offset != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    now->tv_sec += *offset;
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec precise;
  if (clock_gettime(CLOCK_REALTIME, &precise) != 0) return -1;
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *where) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (where != NULL) *where = precise.tv_sec;
  return precise.tv_sec;
}
