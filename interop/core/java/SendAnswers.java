package interop;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import javax.jms.CompletionListener;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.api.core.client.ClientMessage;
import org.apache.activemq.artemis.api.core.client.ClientProducer;
import org.apache.activemq.artemis.api.core.client.ClientSession;

/** What tells a sender that its messages have arrived: waiting, completion listeners, handlers of the core API. */
final class SendAnswers implements Program {
    private static final int MANY = 100;

    @Override
    public void list(BiConsumer<String, Body> cases) {
        for (String blocking : new String[] {"true", "false"}) {
            cases.accept("blocking " + blocking, stage -> blocking(stage, blocking));
        }
        for (String window : new String[] {"0", "1000", "1000000"}) {
            for (int mode : new int[] {DeliveryMode.NON_PERSISTENT, DeliveryMode.PERSISTENT}) {
                cases.accept("completions, mode " + mode + ", window " + window,
                        stage -> completions(stage, mode, "confirmationWindowSize=" + window));
            }
            cases.accept("handlers, window " + window, stage -> handlers(stage, "confirmationWindowSize=" + window));
        }
        cases.accept("completions without a window", stage -> completions(stage, 2, "confirmationWindowSize=-1"));
        cases.accept("completions in a transaction", SendAnswers::inTransaction);
        cases.accept("completion of a refused message", SendAnswers::refused);
        cases.accept("completions of large messages", SendAnswers::large);
        cases.accept("handler of the session", SendAnswers::sessionHandler);
        cases.accept("closed behind them", SendAnswers::closedBehind);
    }

    private static void blocking(Stage stage, String blocking) throws Exception {
        Session session = stage.auto("blockOnDurableSend=" + blocking + "&blockOnNonDurableSend=" + blocking);
        MessageProducer producer = session.createProducer(stage.queue());
        for (int mode : new int[] {DeliveryMode.NON_PERSISTENT, DeliveryMode.PERSISTENT}) {
            producer.send(session.createTextMessage("mode " + mode), mode, 4, 0);
        }
        session.close();
        stage.drain("left", stage.queue());
    }

    /** Notes texts in the order in which they are confirmed. */
    private static final class Noted implements CompletionListener {
        final List<String> seen = Collections.synchronizedList(new ArrayList<>());
        private final Stage stage;
        private final CountDownLatch done;

        Noted(Stage stage, int count) {
            this.stage = stage;
            done = new CountDownLatch(count);
        }

        @Override
        public void onCompletion(Message message) {
            try {
                seen.add(Stage.body(message));
            } catch (JMSException error) {
                seen.add(error.toString());
            }
            done.countDown();
        }

        @Override
        public void onException(Message message, Exception error) {
            seen.add(stage.describe(error));
            done.countDown();
        }

        boolean complete() throws InterruptedException {
            return done.await(Scene.LONG_MS, TimeUnit.MILLISECONDS);
        }
    }

    private static void completions(Stage stage, int mode, String option) throws Exception {
        Session sender = stage.auto(option);
        MessageProducer producer = sender.createProducer(stage.queue());
        producer.setDeliveryMode(mode);
        Noted noted = new Noted(stage, MANY);
        List<String> expected = new ArrayList<>();
        for (int number = 0; number < MANY; number++) {
            producer.send(sender.createTextMessage("m" + number), noted);
            expected.add("m" + number);
        }
        stage.say("complete: %s, in order: %s", noted.complete(), noted.seen.equals(expected));
        // Without a window a message is confirmed when it is sent.
        ClientSession session = stage.core();
        Scene.until(() -> session.queueQuery(new SimpleString(stage.own(""))).getMessageCount() == MANY);
    }

    private static void inTransaction(Stage stage) throws Exception {
        Session session = stage.session(Session.SESSION_TRANSACTED, "confirmationWindowSize=100000");
        MessageProducer producer = session.createProducer(stage.queue());
        Noted noted = new Noted(stage, 3);
        for (int number = 0; number < 3; number++) {
            producer.send(session.createTextMessage("m" + number), noted);
        }
        session.commit();
        stage.say("complete: %s %s", noted.complete(), noted.seen);
        stage.drain("left", stage.queue());
    }

    private static void refused(Stage stage) throws Exception {
        Session session = stage.auto("confirmationWindowSize=100000&producerWindowSize=-1");
        MessageProducer producer = session.createProducer(stage.queue(".failing"));
        Noted noted = new Noted(stage, 20);
        for (int number = 0; number < 20; number++) {
            producer.send(session.createTextMessage("x".repeat(10_000)), noted);
        }
        stage.say("complete: %s", noted.complete());
        List<String> refused = new ArrayList<>(noted.seen);
        refused.removeIf(text -> text.startsWith("x"));
        stage.say("refused: %s", refused.isEmpty() ? "none" : refused.get(0));
    }

    private static void large(Stage stage) throws Exception {
        Session session = stage.auto("confirmationWindowSize=100000");
        MessageProducer producer = session.createProducer(stage.queue());
        Noted noted = new Noted(stage, 5);
        for (int number = 0; number < 5; number++) {
            producer.send(session.createTextMessage(number % 2 == 0 ? "y".repeat(300_000) : "small"), noted);
        }
        stage.say("complete: %s", noted.complete());
        List<Integer> lengths = new ArrayList<>();
        noted.seen.forEach(text -> lengths.add(text.length()));
        stage.say("%s", lengths);
    }

    private static void handlers(Stage stage, String option) throws Exception {
        ClientSession session = stage.core(true, true, option);
        session.createQueue(stage.own(""), RoutingType.ANYCAST, stage.own(""), true);
        ClientProducer producer = session.createProducer(stage.own(""));
        List<Integer> seen = Collections.synchronizedList(new ArrayList<>());
        List<Integer> expected = new ArrayList<>();
        CountDownLatch done = new CountDownLatch(MANY);
        for (int number = 0; number < MANY; number++) {
            int mine = number;
            expected.add(number);
            producer.send(session.createMessage(true), message -> {
                seen.add(mine);
                done.countDown();
            });
        }
        Scene.await(done);
        stage.say("in order: %s", seen.equals(expected));
    }

    private static void sessionHandler(Stage stage) throws Exception {
        ClientSession session = stage.core(true, true, "confirmationWindowSize=5000");
        session.createQueue(stage.own(""), RoutingType.ANYCAST, stage.own(""), true);
        CountDownLatch done = new CountDownLatch(MANY);
        session.setSendAcknowledgementHandler(message -> done.countDown());
        ClientProducer producer = session.createProducer(stage.own(""));
        for (int number = 0; number < MANY; number++) {
            ClientMessage message = session.createMessage(number % 2 == 0);
            producer.send(message);
        }
        Scene.await(done);
        stage.say("all confirmed");
    }

    private static void closedBehind(Stage stage) throws Exception {
        Session session = stage.auto("confirmationWindowSize=1000000");
        MessageProducer producer = session.createProducer(stage.queue());
        Noted noted = new Noted(stage, MANY);
        for (int number = 0; number < MANY; number++) {
            producer.send(session.createTextMessage("m" + number), noted);
        }
        session.close();
        stage.say("complete: %s", noted.complete());
    }
}
