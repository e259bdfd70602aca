package interop;

import java.util.Collections;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import javax.jms.BytesMessage;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.advisory.AdvisorySupport;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;

/** What becomes of senders where there is no room, of consumers that are too slow, and who is told. */
final class FlowControl implements Program {
    /** Three are more than the limit, two are not, however a broker counts. */
    private static final int BODY_BYTES = 100_000;
    private static final int FULL = 3;
    /** As configured. */
    private static final long SENDER_WAITS_MS = 1_000;
    private static final int WINDOW_BYTES = 150_000;

    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("a full queue", stage -> full(stage, new ActiveMQQueue(stage.own(".blocking"))));
        cases.accept("a full topic", stage -> full(stage, new ActiveMQTopic(stage.own(".blocking"))));
        cases.accept("a full queue, told", stage -> told(stage, new ActiveMQQueue(stage.own(".blocking"))));
        cases.accept("a full topic, told", stage -> told(stage, new ActiveMQTopic(stage.own(".blocking"))));
        cases.accept("a full topic, not told", FlowControl::untold);
        cases.accept("a transaction", stage -> transaction(stage, "commit"));
        cases.accept("a rollback of what waits", stage -> transaction(stage, "rollback"));
        cases.accept("a window", FlowControl::window);
        cases.accept("consuming on the connection that waits", FlowControl::consuming);
        cases.accept("sending elsewhere on the connection that waits", FlowControl::elsewhere);
        cases.accept("closing a connection that waits", FlowControl::closing);
        cases.accept("expired while it waits", FlowControl::expired);
        cases.accept("no flow control", stage -> full(stage, new ActiveMQQueue(stage.own(".uncontrolled"))));
        cases.accept("fails at once", FlowControl::fails);
        cases.accept("fails at once, without an answer", FlowControl::failsLater);
        cases.accept("fails at once in a transaction", FlowControl::failsInTransaction);
        cases.accept("fails after a time, without an answer", FlowControl::failsAfter);
        cases.accept("a queue fails at once", stage -> policy(stage, new ActiveMQQueue(stage.own(".failing"))));
        cases.accept("a queue fails after a time", stage -> policy(stage, new ActiveMQQueue(stage.own(".waiting"))));
        cases.accept("a topic fails after a time", stage -> policy(stage, new ActiveMQTopic(stage.own(".waiting"))));
        cases.accept("a slow consumer of a topic", stage -> slow(stage, new ActiveMQTopic(stage.own(".watched")), true));
        cases.accept("a slow consumer of a topic, not told", stage -> slow(stage, (ActiveMQTopic) stage.topic(), false));
        cases.accept("a slow durable subscriber", FlowControl::slowSubscriber);
        cases.accept("a slow consumer of a queue", stage -> slow(stage, new ActiveMQQueue(stage.own(".watched")), true));
        cases.accept("discarded", stage -> discarded(stage, DeliveryMode.NON_PERSISTENT));
        cases.accept("discarded and persistent", stage -> discarded(stage, DeliveryMode.PERSISTENT));
    }

    /** A destination without room, and one that takes from it when it is told to. */
    private static final class Full {
        final ActiveMQDestination destination;
        private final Stage stage;
        private final MessageConsumer puller;

        Full(Stage stage, ActiveMQDestination destination) throws JMSException {
            this.stage = stage;
            this.destination = destination;
            // Of a topic it gets that which is sent from now on.
            puller = plain(stage.connect("jms.prefetchPolicy.all=0")).createConsumer(destination);
            ActiveMQConnection connection = stage.connect();
            Session session = plain(connection);
            MessageProducer producer = session.createProducer(destination);
            for (int number = 1; number <= FULL; number++) {
                producer.send(message(session, number));
            }
            connection.close();
        }

        static Full blocking(Stage stage) throws JMSException {
            return new Full(stage, new ActiveMQQueue(stage.own(".blocking")));
        }

        static Full failing(Stage stage) throws JMSException {
            return new Full(stage, new ActiveMQTopic(stage.own(".failing")));
        }

        /** One more than there is room for. */
        CompletableFuture<String> oneMore() throws JMSException {
            return oneMore(plain(stage.connect()));
        }

        CompletableFuture<String> oneMore(Session session) {
            return inBackground(() -> session.createProducer(destination).send(message(session, FULL + 1)));
        }

        /** What waits goes on once one was taken. */
        void makesRoomFor(String what, CompletableFuture<String> action) throws Exception {
            takeOne();
            ends(stage, what, action);
        }

        void takeOne() throws JMSException {
            stage.say("taken: %s", shown(puller.receive(Stage.LONG_MS)));
        }

        void left() throws JMSException {
            StringBuilder seen = new StringBuilder();
            for (Message one : Stage.rest(puller)) {
                seen.append(' ').append(shown(one));
            }
            stage.say("left:%s", seen);
        }
    }

    private static Session plain(ActiveMQConnection connection) throws JMSException {
        return connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    private static MessageProducer unanswered(Session session, ActiveMQDestination destination) throws JMSException {
        MessageProducer producer = session.createProducer(destination);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        return producer;
    }

    private static BytesMessage message(Session session, int number) throws JMSException {
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(new byte[BODY_BYTES]);
        message.setIntProperty("number", number);
        return message;
    }

    private static String shown(Message message) throws JMSException {
        return message == null ? "nothing" : String.valueOf(message.getIntProperty("number"));
    }

    private static CompletableFuture<String> inBackground(Action action) {
        CompletableFuture<String> done = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                action.run();
                done.complete("works");
            } catch (Throwable error) {
                done.complete(Stage.classes(error));
            }
        });
        thread.setDaemon(true);
        thread.start();
        return done;
    }

    /** What the connection's listener hears first. */
    private static CompletableFuture<String> heard(ActiveMQConnection connection) throws JMSException {
        CompletableFuture<String> heard = new CompletableFuture<>();
        connection.setExceptionListener(error -> heard.complete(Stage.classes(error)));
        return heard;
    }

    /** Says whether it is still not done after a while. */
    private static void waits(Stage stage, String what, CompletableFuture<String> action) throws Exception {
        within(stage, Stage.SHORT_MS, what, action, "waits");
    }

    private static void ends(Stage stage, String what, CompletableFuture<String> action) throws Exception {
        within(stage, Stage.LONG_MS, what, action, "never ends");
    }

    private static void within(
            Stage stage, long limitMs, String what, CompletableFuture<String> action, String otherwise) throws Exception {
        String became;
        try {
            became = action.get(limitMs, TimeUnit.MILLISECONDS);
        } catch (TimeoutException notYet) {
            became = otherwise;
        }
        stage.say("%s: %s", what, became);
    }

    private static void full(Stage stage, ActiveMQDestination destination) throws Exception {
        Full full = new Full(stage, destination);
        CompletableFuture<String> sent = full.oneMore();
        waits(stage, "one more", sent);
        full.makesRoomFor("one more", sent);
        full.left();
    }

    private static void told(Stage stage, ActiveMQDestination destination) throws Exception {
        MessageConsumer told = Advisories.watch(stage, AdvisorySupport.getFullAdvisoryTopic(destination));
        MessageConsumer fast = Advisories.watch(stage, AdvisorySupport.getFastProducerAdvisoryTopic(destination));
        Full full = new Full(stage, destination);
        stage.nothing("full, before anybody waits", told);
        CompletableFuture<String> sent = full.oneMore();
        Advisories.tell(stage, "full", told);
        Advisories.tell(stage, "fast producer", fast);
        waits(stage, "one more", sent);
        full.makesRoomFor("one more", sent);
        stage.nothing("full again", told);
        full.left();
    }

    private static void untold(Stage stage) throws Exception {
        ActiveMQDestination topic = new ActiveMQTopic(stage.own(".failing"));
        MessageConsumer told = Advisories.watch(stage, AdvisorySupport.getFullAdvisoryTopic(topic));
        MessageConsumer fast = Advisories.watch(stage, AdvisorySupport.getFastProducerAdvisoryTopic(topic));
        Full full = new Full(stage, topic);
        ends(stage, "one more", full.oneMore());
        stage.nothing("full", told);
        stage.nothing("fast producer", fast);
        full.left();
    }

    private static void transaction(Stage stage, String end) throws Exception {
        Full full = Full.blocking(stage);
        Session session = stage.connect().createSession(true, Session.SESSION_TRANSACTED);
        CompletableFuture<String> sent = inBackground(() -> {
            session.createProducer(full.destination).send(message(session, FULL + 1));
            if (end.equals("commit")) {
                session.commit();
            } else {
                session.rollback();
            }
        });
        waits(stage, end, sent);
        full.makesRoomFor(end, sent);
        full.left();
    }

    private static void window(Stage stage) throws Exception {
        Full full = Full.blocking(stage);
        Session session = plain(stage.connect("jms.producerWindowSize=" + WINDOW_BYTES));
        MessageProducer producer = unanswered(session, full.destination);
        AtomicInteger returned = new AtomicInteger();
        CompletableFuture<String> sent = inBackground(() -> {
            for (int number = 1; number <= 3; number++) {
                producer.send(message(session, FULL + number));
                returned.incrementAndGet();
            }
        });
        waits(stage, "three more", sent);
        stage.say("sent before that: %d", returned.get());
        full.makesRoomFor("three more", sent);
        full.takeOne();
        full.takeOne();
        Stage.until(() -> pending(stage, (Queue) full.destination) == FULL);
        full.left();
    }

    private static int pending(Stage stage, Queue queue) throws JMSException {
        ActiveMQConnection connection = stage.connect();
        int count = Collections.list(plain(connection).createBrowser(queue).getEnumeration()).size();
        connection.close();
        return count;
    }

    private static void consuming(Stage stage) throws Exception {
        Full full = Full.blocking(stage);
        ActiveMQConnection connection = stage.connect("jms.prefetchPolicy.all=1");
        MessageConsumer consumer = plain(connection).createConsumer(full.destination);
        CompletableFuture<String> sent = full.oneMore(plain(connection));
        waits(stage, "one more", sent);
        for (int number = 1; number <= FULL + 1; number++) {
            stage.say("received: %s", shown(consumer.receive(Stage.LONG_MS)));
        }
        ends(stage, "one more", sent);
    }

    private static void elsewhere(Stage stage) throws Exception {
        Full full = Full.blocking(stage);
        ActiveMQConnection connection = stage.connect();
        CompletableFuture<String> sent = full.oneMore(plain(connection));
        waits(stage, "one more", sent);
        Session other = plain(connection);
        waits(stage, "to another queue", inBackground(() ->
                other.createProducer(stage.queue()).send(other.createTextMessage("m1"))));
        full.makesRoomFor("one more", sent);
        full.left();
    }

    private static void closing(Stage stage) throws Exception {
        Full full = Full.blocking(stage);
        ActiveMQConnection connection = stage.connect();
        waits(stage, "one more", full.oneMore(plain(connection)));
        ends(stage, "close", inBackground(connection::close));
        full.left();
    }

    private static void expired(Stage stage) throws Exception {
        Full full = Full.blocking(stage);
        Session session = plain(stage.connect());
        CompletableFuture<String> sent = inBackground(() -> {
            MessageProducer producer = session.createProducer(full.destination);
            producer.send(message(session, FULL + 1), DeliveryMode.NON_PERSISTENT, 4, 100);
            session.createProducer(null).close();
        });
        Thread.sleep(2 * Stage.SHORT_MS);
        full.makesRoomFor("one more", sent);
        full.left();
    }

    private static void fails(Stage stage) throws Exception {
        Full full = Full.failing(stage);
        Session session = plain(stage.connect());
        MessageProducer producer = session.createProducer(full.destination);
        stage.attempt("one more", () -> producer.send(message(session, FULL + 1)));
        full.takeOne();
        stage.attempt("again", () -> producer.send(message(session, FULL + 2)));
        full.left();
    }

    private static void failsLater(Stage stage) throws Exception {
        Full full = Full.failing(stage);
        ActiveMQConnection connection = stage.connect();
        CompletableFuture<String> heard = heard(connection);
        Session session = plain(connection);
        MessageProducer producer = unanswered(session, full.destination);
        stage.attempt("one more", () -> producer.send(message(session, FULL + 1)));
        ends(stage, "the listener", heard);
        stage.attempt("the connection goes on", () -> session.createConsumer(stage.queue()));
        full.left();
    }

    private static void failsInTransaction(Stage stage) throws Exception {
        Full full = Full.failing(stage);
        Session session = stage.connect().createSession(true, Session.SESSION_TRANSACTED);
        session.createProducer(full.destination).send(message(session, FULL + 1));
        stage.attempt("commit", () -> session.commit());
        full.left();
    }

    /** Of a topic only senders that want no answer wait so long and no longer. */
    private static void failsAfter(Stage stage) throws Exception {
        Full full = new Full(stage, new ActiveMQTopic(stage.own(".waiting")));
        ActiveMQConnection connection = stage.connect();
        CompletableFuture<String> heard = heard(connection);
        Session session = plain(connection);
        MessageProducer producer = unanswered(session, full.destination);
        long began = System.nanoTime();
        producer.send(message(session, FULL + 1));
        ends(stage, "the listener", heard);
        stage.say("after a while: %s", System.nanoTime() - began >= TimeUnit.MILLISECONDS.toNanos(SENDER_WAITS_MS * 9 / 10));
        full.takeOne();
        producer.setDeliveryMode(DeliveryMode.PERSISTENT);
        stage.attempt("again", () -> producer.send(message(session, FULL + 2)));
        full.left();
    }

    /** Whether what a policy says about senders counts for those that want an answer. */
    private static void policy(Stage stage, ActiveMQDestination destination) throws Exception {
        Full full = new Full(stage, destination);
        CompletableFuture<String> sent = full.oneMore();
        within(stage, 3 * SENDER_WAITS_MS, "one more", sent, "waits");
        full.makesRoomFor("one more", sent);
        full.left();
    }

    private static void slow(Stage stage, ActiveMQDestination destination, boolean told) throws Exception {
        MessageConsumer watching = Advisories.watch(stage, AdvisorySupport.getSlowConsumerAdvisoryTopic(destination));
        lags(stage, destination, having(2, stage.connect()).createConsumer(destination), watching, told);
    }

    private static void slowSubscriber(Stage stage) throws Exception {
        ActiveMQTopic topic = new ActiveMQTopic(stage.own(".watched"));
        ActiveMQDestination watched = topic;
        MessageConsumer watching = Advisories.watch(stage, AdvisorySupport.getSlowConsumerAdvisoryTopic(watched));
        Session session = having(2, stage.connectAs("interop.slow"));
        MessageConsumer consumer = session.createDurableSubscriber(topic, "s");
        lags(stage, topic, consumer, watching, true);
        consumer.close();
        session.unsubscribe("s");
    }

    /** Its consumers hold so many, and get no more unless they acknowledge. */
    private static Session having(int prefetch, ActiveMQConnection connection) throws JMSException {
        connection.getPrefetchPolicy().setAll(prefetch);
        return connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
    }

    /** More comes for the consumer than it may hold; then who watches is told of it once, or not at all. */
    private static void lags(
            Stage stage,
            ActiveMQDestination destination,
            MessageConsumer consumer,
            MessageConsumer watching,
            boolean told)
            throws Exception {
        stage.send(destination, 8);
        Stage.ready(consumer, 2);
        if (told) {
            Advisories.tell(stage, "slow", watching);
        }
        stage.nothing("told again", watching);
    }

    private static void discarded(Stage stage, int mode) throws Exception {
        ActiveMQDestination topic = new ActiveMQTopic(stage.own(".kept"));
        MessageConsumer watching = Advisories.watch(stage, AdvisorySupport.getMessageDiscardedAdvisoryTopic(topic));
        MessageConsumer consumer = having(1, stage.connect()).createConsumer(topic);
        Session session = plain(stage.connect());
        MessageProducer producer = session.createProducer(topic);
        producer.setDeliveryMode(mode);
        for (int number = 1; number <= 6; number++) {
            producer.send(session.createTextMessage("m" + number));
        }
        Stage.ready(consumer, 1);
        Advisories.tell(stage, "first", watching);
        Advisories.tell(stage, "second", watching);
        stage.nothing("third", watching);
        stage.drain("dead", new ActiveMQQueue("ActiveMQ.DLQ"));
    }
}
