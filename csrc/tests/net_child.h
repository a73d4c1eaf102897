/* SPDX-License-Identifier: BSD-2-Clause */
/* A test in a network namespace of its own, in a child process: as root, or inside a user
 * namespace. Where neither is allowed the test is skipped by name; checks that fail in the child
 * fail here. */
#ifndef MRC_TEST_NET_CHILD_H
#define MRC_TEST_NET_CHILD_H

#include "t.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_SKIP = 77 };

static inline void child_write(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        printf("cannot write %s\n", path);
    if (fd >= 0)
        close(fd);
}

static inline int child_unshare(void)
{
    if (unshare(CLONE_NEWNET) == 0)
        return 0;
    char map[64];
    const int uid = (int)getuid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return -1;
    snprintf(map, sizeof map, "0 %d 1", uid);
    child_write("/proc/self/uid_map", map);
    return 0;
}

/* Bring the loopback interface up. */
static inline void child_loopback(int mtu)
{
    struct ifreq r = {.ifr_name = "lo"};
    const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    r.ifr_flags = IFF_UP;
    CHECK_EQ(ioctl(fd, SIOCSIFFLAGS, &r), 0);
    r.ifr_mtu = mtu;
    CHECK_EQ(ioctl(fd, SIOCSIFMTU, &r), 0);
    close(fd);
}

static inline void child_run(const char *name, int (*run)(void))
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        int rc = CHILD_SKIP;
        if (child_unshare() == 0)
            rc = run();
        fflush(NULL);
        _exit(rc != 0 ? rc : t_failures != 0);
    }
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIP)
        printf("SKIPPED %s: needs root or user namespaces\n", name);
    else
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#endif
