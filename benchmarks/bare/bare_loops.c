/* The loops that MPI benchmarks time, bare: what a separate program measures that has nothing else in it.
 *
 *     mpiexec -n 2 bare_loops LOOP BYTES REPETITIONS WARMUP WINDOW EARLIER [-distinct]
 *
 * Rank 0 prints the seconds per message, the mean over all repetitions: one pair of clock readings around the whole
 * loop. The protocols are those of OSU 7.4, with its buffers: one page-aligned send buffer and one receive buffer, which
 * all messages of a window share (`-distinct`: a buffer each). benchmarks/engine_speed.py compares the engine with it.
 *
 * EARLIER: round trips of 8 B before the loop. MPICH 4.0 passes messages within a host through a ring of cells; which
 * cell a window of small messages begins with, that is, how many messages went before it, changes its time by a quarter.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAYLOAD_TAG = 100, ACK_TAG = 101, PAGE = 4096 };

struct loop {
    int bytes, window, rank, peer;
    size_t stride; /* from one message of a window to the next; 0: all in one buffer */
    char *send, *receive;
    MPI_Request *requests; /* 2 * window */
    MPI_Win target;
};

static void latency(struct loop *l) {
    if (l->rank == 0) {
        MPI_Send(l->send, l->bytes, MPI_CHAR, l->peer, PAYLOAD_TAG, MPI_COMM_WORLD);
        MPI_Recv(l->receive, l->bytes, MPI_CHAR, l->peer, PAYLOAD_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(l->receive, l->bytes, MPI_CHAR, l->peer, PAYLOAD_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(l->send, l->bytes, MPI_CHAR, l->peer, PAYLOAD_TAG, MPI_COMM_WORLD);
    }
}

static void post_sends(struct loop *l, MPI_Request *requests) {
    for (int i = 0; i < l->window; ++i)
        MPI_Isend(l->send + i * l->stride, l->bytes, MPI_CHAR, l->peer, PAYLOAD_TAG, MPI_COMM_WORLD, &requests[i]);
}

static void post_receives(struct loop *l, MPI_Request *requests) {
    for (int i = 0; i < l->window; ++i)
        MPI_Irecv(l->receive + i * l->stride, l->bytes, MPI_CHAR, l->peer, PAYLOAD_TAG, MPI_COMM_WORLD, &requests[i]);
}

static void bandwidth(struct loop *l) {
    char ack = 0;
    if (l->rank == 0) {
        post_sends(l, l->requests);
        MPI_Waitall(l->window, l->requests, MPI_STATUSES_IGNORE);
        MPI_Recv(&ack, 1, MPI_CHAR, l->peer, ACK_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        post_receives(l, l->requests);
        MPI_Waitall(l->window, l->requests, MPI_STATUSES_IGNORE);
        MPI_Send(&ack, 1, MPI_CHAR, l->peer, ACK_TAG, MPI_COMM_WORLD);
    }
}

static void bibandwidth(struct loop *l) {
    post_receives(l, l->requests);
    post_sends(l, l->requests + l->window);
    MPI_Waitall(l->window, l->requests + l->window, MPI_STATUSES_IGNORE);
    MPI_Waitall(l->window, l->requests, MPI_STATUSES_IGNORE);
}

static void put(struct loop *l) {
    MPI_Put(l->send, l->bytes, MPI_CHAR, l->peer, 0, l->bytes, MPI_CHAR, l->target);
    MPI_Win_flush(l->peer, l->target);
}

static void get(struct loop *l) {
    MPI_Get(l->receive, l->bytes, MPI_CHAR, l->peer, 0, l->bytes, MPI_CHAR, l->target);
    MPI_Win_flush(l->peer, l->target);
}

static void put_window(struct loop *l) {
    for (int i = 0; i < l->window; ++i)
        MPI_Put(l->send + (size_t)i * l->bytes, l->bytes, MPI_CHAR, l->peer, (MPI_Aint)i * l->bytes, l->bytes, MPI_CHAR,
                l->target);
    MPI_Win_flush(l->peer, l->target);
}

static void get_window(struct loop *l) {
    for (int i = 0; i < l->window; ++i)
        MPI_Get(l->receive + (size_t)i * l->bytes, l->bytes, MPI_CHAR, l->peer, (MPI_Aint)i * l->bytes, l->bytes,
                MPI_CHAR, l->target);
    MPI_Win_flush(l->peer, l->target);
}

/* `messages`: of one repetition, per `window`; 0: the window itself. */
static const struct entry {
    const char *name;
    void (*repeat)(struct loop *);
    int messages;
    int one_sided;
} table[] = {
    {"latency", latency, 2, 0},          {"bandwidth", bandwidth, 0, 0},      {"bibandwidth", bibandwidth, 0, 0},
    {"put_latency", put, 1, 1},          {"get_latency", get, 1, 1},          {"put_bandwidth", put_window, 0, 1},
    {"get_bandwidth", get_window, 0, 1},
};

static char *page_aligned(size_t bytes, int value) {
    void *data = NULL;
    if (posix_memalign(&data, PAGE, bytes) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    memset(data, value, bytes);
    return data;
}

/* Rank 0 works in the window of rank 1, which waits in a barrier. Returns the seconds that it all took. */
static double repeat_one_sided(const struct entry *entry, struct loop *l, int repetitions, int warmup) {
    double begin = 0.0;
    if (l->rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, l->peer, 0, l->target);
        for (int i = 0; i < warmup; ++i) entry->repeat(l);
        begin = MPI_Wtime();
        for (int i = 0; i < repetitions; ++i) entry->repeat(l);
        begin = MPI_Wtime() - begin;
        MPI_Win_unlock(l->peer, l->target);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return begin;
}

static void send_earlier(const struct loop *l, int round_trips) {
    struct loop earlier = *l;
    earlier.bytes = 8;
    for (int i = 0; i < round_trips; ++i) latency(&earlier);
}

static double repeat_two_sided(const struct entry *entry, struct loop *l, int repetitions, int warmup) {
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < warmup; ++i) entry->repeat(l);
    const double begin = MPI_Wtime();
    for (int i = 0; i < repetitions; ++i) entry->repeat(l);
    return MPI_Wtime() - begin;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const struct entry *entry = NULL;
    for (size_t i = 0; argc > 1 && i < sizeof table / sizeof *table; ++i)
        if (strcmp(table[i].name, argv[1]) == 0) entry = &table[i];
    const int distinct = argc == 8 && strcmp(argv[7], "-distinct") == 0;
    if (entry == NULL || ranks != 2 || (argc != 7 && !distinct)) {
        if (rank == 0)
            fprintf(stderr, "bare_loops: 2 ranks, and LOOP BYTES REPETITIONS WARMUP WINDOW EARLIER [-distinct]\n");
        MPI_Finalize();
        return 2;
    }
    const int bytes = atoi(argv[2]), repetitions = atoi(argv[3]), warmup = atoi(argv[4]), window = atoi(argv[5]),
              earlier = atoi(argv[6]);
    const int messages = entry->messages == 0 ? window : entry->messages;
    const size_t stride = distinct ? ((size_t)bytes + 63) / 64 * 64 : 0;
    const size_t room = (entry->one_sided ? (size_t)bytes : stride) * (size_t)window + (size_t)(bytes > 8 ? bytes : 8);
    struct loop l = {bytes, window, rank, 1 - rank, stride, page_aligned(room, 'a'), page_aligned(room, 'b'), NULL,
                     MPI_WIN_NULL};
    l.requests = malloc(2 * (size_t)window * sizeof *l.requests);
    send_earlier(&l, earlier);
    void *base = NULL;
    if (entry->one_sided)
        MPI_Win_allocate((MPI_Aint)room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &l.target);
    const double seconds = entry->one_sided ? repeat_one_sided(entry, &l, repetitions, warmup)
                                            : repeat_two_sided(entry, &l, repetitions, warmup);
    if (rank == 0) printf("%.12g\n", seconds / repetitions / messages);
    if (entry->one_sided) MPI_Win_free(&l.target);
    free(l.requests);
    free(l.send);
    free(l.receive);
    MPI_Finalize();
    return 0;
}
