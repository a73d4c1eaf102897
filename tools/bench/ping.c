/* SPDX-License-Identifier: BSD-2-Clause */
/* The ruler for latency: one datagram there, one back, two blocking sockets, no protocol on top.
 *
 *   ping serve ADDR PORT                     answers until it is ended
 *   ping go ADDR PORT [-t SECONDS] [-s BYTES]
 *
 * `go` prints what round trips took as one JSON object. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "quantile.h"

enum { BYTES_MAX = 65507 };

static uint8_t message[BYTES_MAX];

static uint64_t ping_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void ping_die(const char *what)
{
    fprintf(stderr, "ping: %s: %s\n", what, strerror(errno));
    exit(4);
}

static void ping_serve(const struct sockaddr_in6 *at)
{
    struct sockaddr_in6 from;
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)at, sizeof *at) != 0)
        ping_die("bind");
    puts("ready");
    fflush(stdout);
    for (;;) {
        socklen_t len = sizeof from;
        ssize_t n = recvfrom(fd, message, sizeof message, 0, (struct sockaddr *)&from, &len);
        if (n < 0)
            ping_die("recvfrom");
        if (sendto(fd, message, (size_t)n, 0, (const struct sockaddr *)&from, len) != n)
            ping_die("sendto");
    }
}

static void ping_go(const struct sockaddr_in6 *to, double seconds, size_t bytes)
{
    const struct timeval patience = {.tv_sec = 1};
    struct quantile taken = {0};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof *to) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0)
        ping_die("connect");
    const uint64_t end = ping_now() + (uint64_t)(seconds * 1e9);
    uint64_t now;
    while ((now = ping_now()) < end) {
        if (send(fd, message, bytes, 0) < 0)
            ping_die("send");
        if (recv(fd, message, sizeof message, 0) < 0)
            ping_die("recv");
        quantile_add(&taken, ping_now() - now);
    }
    quantile_print(&taken);
}

static double ping_number(const char *text, double low, double high)
{
    char *end;
    const double v = strtod(text, &end);
    if (*text != '\0' && *end == '\0' && v >= low && v <= high)
        return v;
    fprintf(stderr, "ping: %s: must be %.0f..%.0f\n", text, low, high);
    exit(1);
}

int main(int argc, char **argv)
{
    struct sockaddr_in6 addr = {.sin6_family = AF_INET6};
    double seconds = 1;
    double bytes = 100;
    int opt;
    if (argc < 4 || inet_pton(AF_INET6, argv[2], &addr.sin6_addr) != 1) {
        fputs("usage: ping serve|go IPV6-ADDRESS PORT [-t SECONDS] [-s BYTES]\n", stderr);
        return 1;
    }
    addr.sin6_port = htons((uint16_t)ping_number(argv[3], 1, 65535));
    while ((opt = getopt(argc - 3, argv + 3, "t:s:")) != -1) {
        switch (opt) {
        case 't': seconds = ping_number(optarg, 0.01, 3600); break;
        case 's': bytes = ping_number(optarg, 1, BYTES_MAX); break;
        default: return 1;
        }
    }
    if (strcmp(argv[1], "serve") == 0)
        ping_serve(&addr);
    else
        ping_go(&addr, seconds, (size_t)bytes);
    return 0;
}
