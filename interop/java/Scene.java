package interop;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.transaction.xa.XAException;

/** What a case works with, whatever its client: lines of what it sees, names of its own, and the harness. */
abstract class Scene implements AutoCloseable {
    static final String USER = "interop";
    static final String PASSWORD = "interop-passcode";
    /** For what must come. */
    static final long LONG_MS = 15_000;

    final String name;
    private final List<String> lines = Collections.synchronizedList(new ArrayList<>());
    private long limitMs = 60_000;

    Scene(String name) {
        this.name = name;
    }

    synchronized long limitMs() {
        return limitMs;
    }

    /** Lets a case take longer than usual. */
    synchronized void allow(long milliseconds) {
        limitMs = milliseconds;
    }

    /** The case's name as part of a destination's name, with a suffix. */
    String own(String suffix) {
        return "interop." + name.replaceAll("[^A-Za-z0-9]+", "_") + suffix;
    }

    @Override
    public abstract void close();

    // --- what is seen

    /** A line that must be the same with every broker. */
    void say(String format, Object... values) {
        lines.add(values.length == 0 ? format : String.format(format, values));
    }

    /** A line for the reader, which is not compared. */
    void note(String format, Object... values) {
        lines.add("~ " + String.format(format, values));
    }

    void print() {
        synchronized (lines) {
            for (String line : lines) {
                System.out.println("  " + line.replace("\n", "\\n").replace("\r", "\\r"));
            }
            lines.clear();
        }
        System.out.flush();
    }

    /** Says whether it works, or which error it gives. */
    boolean attempt(String what, Action action) {
        Callable<?> nothing = () -> {
            action.run();
            return null;
        };
        return attempt(what, nothing);
    }

    boolean attempt(String what, Callable<?> action) {
        try {
            action.call();
            say("%s: works", what);
            return true;
        } catch (Throwable error) {
            say("%s: %s", what, describe(error));
            note("%s", error.getMessage());
            return false;
        }
    }

    /** What is compared of an error. */
    String describe(Throwable error) {
        return classes(error);
    }

    /** The class of an error, and its code if it is one of XA. */
    static String classes(Throwable error) {
        String name = error.getClass().getName();
        return error instanceof XAException ? name + " code " + ((XAException) error).errorCode : name;
    }

    // --- waiting

    static void await(CountDownLatch latch) throws InterruptedException {
        if (!latch.await(LONG_MS, TimeUnit.MILLISECONDS)) {
            throw new IllegalStateException("still " + latch.getCount() + " to come");
        }
    }

    /** Waits for a condition that another thread brings about. */
    static void until(Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(LONG_MS);
        while (!condition.call()) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException("never comes true");
            }
            Thread.sleep(5);
        }
    }

    /** Asks the harness for something and waits until it is done. */
    static void harness(String request) throws Exception {
        System.out.println("@" + request);
        System.out.flush();
        while (System.in.read() != '\n') {
            // The answer is an empty line.
        }
    }
}
