package bench;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/** One job from connecting to the last acknowledgement. */
final class Run {
    private final Job job;
    private final CountDownLatch consumed;
    private final List<Pair> pairs = new ArrayList<>();

    Run(Job job) {
        this.job = job;
        consumed = new CountDownLatch(job.pairs);
    }

    void open() throws Exception {
        for (int number = 0; number < job.pairs; number++) {
            Pair pair = new Pair(job, number, consumed);
            pairs.add(pair);
            pair.open();
        }
        // What warming up and connecting left behind must not be cleared away while it counts.
        System.gc();
    }

    /** The outcome as JSON. */
    String go() throws Exception {
        long cpuBefore = cpuNanos();
        long startedAt = System.nanoTime();
        List<Thread> producers = new ArrayList<>();
        for (Pair pair : pairs) {
            Thread thread = new Thread(() -> pair.produce(startedAt));
            thread.setDaemon(true);
            thread.start();
            producers.add(thread);
        }
        awaitConsumers();
        for (Thread thread : producers) {
            thread.join();
        }
        for (Pair pair : pairs) {
            pair.finish();
        }
        long endedAt = System.nanoTime();
        check();
        long producedAt = pairs.stream().mapToLong(pair -> pair.producedAt).max().orElse(endedAt);
        return outcome(endedAt - startedAt, producedAt - startedAt, cpuNanos() - cpuBefore);
    }

    void close() {
        pairs.forEach(Pair::close);
    }

    private void awaitConsumers() throws Exception {
        long seen = -1;
        long seenAt = System.nanoTime();
        while (!consumed.await(200, TimeUnit.MILLISECONDS)) {
            check();
            long now = System.nanoTime();
            if (progress() != seen) {
                seen = progress();
                seenAt = now;
            } else if (now - seenAt > TimeUnit.SECONDS.toNanos(job.stallAfterS)) {
                throw new IllegalStateException("nothing moves for " + job.stallAfterS + " s: " + counts());
            }
        }
    }

    private void check() throws Exception {
        for (Pair pair : pairs) {
            if (pair.failure != null) {
                throw new Exception(pair.failure);
            }
        }
    }

    private long progress() {
        return pairs.stream().mapToLong(pair -> (long) pair.sent + pair.received).sum();
    }

    private String counts() {
        return String.format("sent %d and received %d of %d", sent(), received(), job.messages());
    }

    private int sent() {
        return pairs.stream().mapToInt(pair -> pair.sent).sum();
    }

    private int received() {
        return pairs.stream().mapToInt(pair -> pair.received).sum();
    }

    private String outcome(long nanos, long producedNanos, long cpuNanos) {
        return String.format(
                Locale.ROOT,
                "{\"sent\":%d,\"confirmed\":%d,\"received\":%d,\"acks\":%d,\"elapsed_s\":%.6f,"
                        + "\"confirmed_after_s\":%s,\"generator_cpu_s\":%.6f,\"delivery\":%s,\"receipt\":%s,"
                        + "\"send_lag\":%s}",
                sent(),
                job.persistent ? sent() : 0,
                received(),
                received(),
                nanos / 1e9,
                job.persistent ? String.format(Locale.ROOT, "%.6f", producedNanos / 1e9) : "null",
                cpuNanos / 1e9,
                Latencies.json(pairs.stream().map(pair -> pair.delivery).collect(Collectors.toList())),
                Latencies.json(pairs.stream().map(pair -> pair.receipt).collect(Collectors.toList())),
                Latencies.json(pairs.stream().map(pair -> pair.sendLag).collect(Collectors.toList())));
    }

    /** Of this virtual machine, its compiler and collector included. */
    private static long cpuNanos() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }
}
