package interop;

import java.util.List;

/** One case of a program, run in a thread of its own. */
final class Case {
    /** A broker that lets so many cases hang will let the others hang as well. */
    private static final int MOST_HANGING = 3;
    private static final int GAVE_UP = 3;

    private final Scene scene;
    private final Action body;
    private Throwable failure;

    Case(Scene scene, Action body) {
        this.scene = scene;
        this.body = body;
    }

    /** Runs cases in turn, and ends the process. */
    static void runAll(List<Case> cases) throws InterruptedException {
        int hanging = 0;
        for (Case one : cases) {
            hanging += one.run() ? 1 : 0;
            if (hanging == MOST_HANGING) {
                System.exit(GAVE_UP);
            }
        }
        // Threads of a client that lost its broker must not keep the process.
        System.exit(0);
    }

    /** Says whether it hangs. */
    private boolean run() throws InterruptedException {
        System.out.println("case " + scene.name);
        Thread thread = new Thread(() -> {
            try {
                body.run();
            } catch (Throwable thrown) {
                failure = thrown;
            }
        });
        thread.setDaemon(true);
        thread.start();
        thread.join(scene.limitMs());
        boolean hangs = thread.isAlive();
        if (hangs) {
            scene.say("hangs");
            for (StackTraceElement frame : thread.getStackTrace()) {
                scene.note("at %s", frame);
            }
            thread.interrupt();
        } else if (failure != null) {
            scene.say("fails with %s", scene.describe(failure));
            scene.note("%s", failure.getMessage());
            for (StackTraceElement frame : failure.getStackTrace()) {
                if (frame.getClassName().startsWith("interop.")) {
                    scene.note("at %s", frame);
                }
            }
        }
        scene.print();
        Thread closing = new Thread(scene::close);
        closing.setDaemon(true);
        closing.start();
        closing.join(20_000);
        return hangs;
    }
}
