package interop;

import java.util.concurrent.Callable;
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
        cases.accept("a transaction", FlowControl::transaction);
        cases.accept("a rollback of what waits", FlowControl::rollback);
        cases.accept("a window", FlowControl::window);
        cases.accept("consuming on the connection that waits", FlowControl::consuming);
        cases.accept("sending elsewhere on the connection that waits", FlowControl::elsewhere);
        cases.accept("closing a connection that waits", FlowControl::closing);
        cases.accept("expired while it waits", FlowControl::expired);
        cases.accept("no flow control", FlowControl::unbounded);
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

    private static BytesMessage message(Session session, int number) throws JMSException {
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(new byte[BODY_BYTES]);
        message.setIntProperty("number", number);
        return message;
    }

    private static void fill(Stage stage, ActiveMQDestination destination) throws JMSException {
        ActiveMQConnection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(destination);
        for (int number = 1; number <= FULL; number++) {
            producer.send(message(session, number));
        }
        connection.close();
    }

    /** Takes nothing but what it asks for; of a topic, that which was sent since. */
    private static MessageConsumer puller(Stage stage, ActiveMQDestination destination) throws JMSException {
        Session session = stage.connect("jms.prefetchPolicy.all=0").createSession(false, Session.AUTO_ACKNOWLEDGE);
        return session.createConsumer(destination);
    }

    private static void takeOne(Stage stage, MessageConsumer puller) throws JMSException {
        stage.say("taken: %s", shown(puller.receive(Stage.LONG_MS)));
    }

    private static void left(Stage stage, MessageConsumer puller) throws JMSException {
        StringBuilder seen = new StringBuilder();
        for (Message one = puller.receiveNoWait(); one != null; one = puller.receiveNoWait()) {
            seen.append(' ').append(shown(one));
        }
        stage.say("left:%s", seen);
    }

    private static String shown(Message message) throws JMSException {
        return message == null ? "nothing" : String.valueOf(message.getIntProperty("number"));
    }

    private static CompletableFuture<String> inBackground(Callable<?> action) {
        CompletableFuture<String> done = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                action.call();
                done.complete("works");
            } catch (Throwable error) {
                done.complete(Stage.classes(error));
            }
        });
        thread.setDaemon(true);
        thread.start();
        return done;
    }

    /** Says whether it is still not done after a while. */
    private static void waits(Stage stage, String what, CompletableFuture<String> action) throws Exception {
        try {
            stage.say("%s: %s", what, action.get(Stage.SHORT_MS, TimeUnit.MILLISECONDS));
        } catch (TimeoutException notYet) {
            stage.say("%s: waits", what);
        }
    }

    private static void ends(Stage stage, String what, CompletableFuture<String> action) throws Exception {
        try {
            stage.say("%s: %s", what, action.get(Stage.LONG_MS, TimeUnit.MILLISECONDS));
        } catch (TimeoutException never) {
            stage.say("%s: never ends", what);
        }
    }

    private static CompletableFuture<String> sending(Stage stage, ActiveMQDestination destination) throws JMSException {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        return inBackground(() -> {
            session.createProducer(destination).send(message(session, FULL + 1));
            return null;
        });
    }

    private static void full(Stage stage, ActiveMQDestination queue) throws Exception {
        MessageConsumer puller = puller(stage, queue);
        fill(stage, queue);
        CompletableFuture<String> sent = sending(stage, queue);
        waits(stage, "one more", sent);
        takeOne(stage, puller);
        ends(stage, "one more", sent);
        left(stage, puller);
    }

    private static void told(Stage stage, ActiveMQDestination queue) throws Exception {
        MessageConsumer full = Advisories.watch(stage, AdvisorySupport.getFullAdvisoryTopic(queue));
        MessageConsumer fast = Advisories.watch(stage, AdvisorySupport.getFastProducerAdvisoryTopic(queue));
        MessageConsumer puller = puller(stage, queue);
        fill(stage, queue);
        stage.nothing("full, before anybody waits", full);
        CompletableFuture<String> sent = sending(stage, queue);
        Advisories.tell(stage, "full", full);
        Advisories.tell(stage, "fast producer", fast);
        waits(stage, "one more", sent);
        takeOne(stage, puller);
        ends(stage, "one more", sent);
        stage.nothing("full again", full);
        left(stage, puller);
    }

    private static void untold(Stage stage) throws Exception {
        ActiveMQTopic topic = new ActiveMQTopic(stage.own(".failing"));
        MessageConsumer full = Advisories.watch(stage, AdvisorySupport.getFullAdvisoryTopic((ActiveMQDestination) topic));
        MessageConsumer fast =
                Advisories.watch(stage, AdvisorySupport.getFastProducerAdvisoryTopic((ActiveMQDestination) topic));
        MessageConsumer puller = puller(stage, topic);
        fill(stage, topic);
        ends(stage, "one more", sending(stage, topic));
        stage.nothing("full", full);
        stage.nothing("fast producer", fast);
        left(stage, puller);
    }

    private static void transaction(Stage stage) throws Exception {
        ActiveMQQueue queue = new ActiveMQQueue(stage.own(".blocking"));
        MessageConsumer puller = puller(stage, queue);
        fill(stage, queue);
        Session session = stage.connect().createSession(true, Session.SESSION_TRANSACTED);
        CompletableFuture<String> sent = inBackground(() -> {
            session.createProducer(queue).send(message(session, FULL + 1));
            session.commit();
            return null;
        });
        waits(stage, "commit", sent);
        takeOne(stage, puller);
        ends(stage, "commit", sent);
        left(stage, puller);
    }

    private static void rollback(Stage stage) throws Exception {
        ActiveMQQueue queue = new ActiveMQQueue(stage.own(".blocking"));
        MessageConsumer puller = puller(stage, queue);
        fill(stage, queue);
        Session session = stage.connect().createSession(true, Session.SESSION_TRANSACTED);
        CompletableFuture<String> sent = inBackground(() -> {
            session.createProducer(queue).send(message(session, FULL + 1));
            session.rollback();
            return null;
        });
        waits(stage, "rollback", sent);
        takeOne(stage, puller);
        ends(stage, "rollback", sent);
        left(stage, puller);
    }

    private static void window(Stage stage) throws Exception {
        ActiveMQQueue queue = new ActiveMQQueue(stage.own(".blocking"));
        MessageConsumer puller = puller(stage, queue);
        fill(stage, queue);
        ActiveMQConnection connection = stage.connect("jms.producerWindowSize=" + WINDOW_BYTES);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(queue);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        AtomicInteger returned = new AtomicInteger();
        CompletableFuture<String> sent = inBackground(() -> {
            for (int number = 1; number <= 3; number++) {
                producer.send(message(session, FULL + number));
                returned.incrementAndGet();
            }
            return null;
        });
        waits(stage, "three more", sent);
        stage.say("sent before that: %d", returned.get());
        takeOne(stage, puller);
        ends(stage, "three more", sent);
        takeOne(stage, puller);
        takeOne(stage, puller);
        Stage.until(() -> pending(stage, queue) == FULL);
        left(stage, puller);
    }

    private static int pending(Stage stage, ActiveMQQueue queue) throws JMSException {
        ActiveMQConnection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        int count = java.util.Collections.list(session.createBrowser(queue).getEnumeration()).size();
        connection.close();
        return count;
    }

    private static void consuming(Stage stage) throws Exception {
        ActiveMQQueue queue = new ActiveMQQueue(stage.own(".blocking"));
        MessageConsumer puller = puller(stage, queue);
        fill(stage, queue);
        ActiveMQConnection connection = stage.connect("jms.prefetchPolicy.all=1");
        MessageConsumer consumer = connection.createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(queue);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        CompletableFuture<String> sent = inBackground(() -> {
            session.createProducer(queue).send(message(session, FULL + 1));
            return null;
        });
        waits(stage, "one more", sent);
        for (int number = 1; number <= FULL + 1; number++) {
            stage.say("received: %s", shown(consumer.receive(Stage.LONG_MS)));
        }
        ends(stage, "one more", sent);
    }

    private static void elsewhere(Stage stage) throws Exception {
        ActiveMQQueue queue = new ActiveMQQueue(stage.own(".blocking"));
        MessageConsumer puller = puller(stage, queue);
        fill(stage, queue);
        ActiveMQConnection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        CompletableFuture<String> sent = inBackground(() -> {
            session.createProducer(queue).send(message(session, FULL + 1));
            return null;
        });
        waits(stage, "one more", sent);
        Session other = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        CompletableFuture<String> meanwhile = inBackground(() -> {
            other.createProducer(stage.queue()).send(other.createTextMessage("m1"));
            return null;
        });
        waits(stage, "to another queue", meanwhile);
        takeOne(stage, puller);
        ends(stage, "one more", sent);
        left(stage, puller);
    }

    private static void closing(Stage stage) throws Exception {
        ActiveMQQueue queue = new ActiveMQQueue(stage.own(".blocking"));
        MessageConsumer puller = puller(stage, queue);
        fill(stage, queue);
        ActiveMQConnection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        CompletableFuture<String> sent = inBackground(() -> {
            session.createProducer(queue).send(message(session, FULL + 1));
            return null;
        });
        waits(stage, "one more", sent);
        ends(stage, "close", inBackground(() -> {
            connection.close();
            return null;
        }));
        left(stage, puller);
    }

    private static void expired(Stage stage) throws Exception {
        ActiveMQQueue queue = new ActiveMQQueue(stage.own(".blocking"));
        MessageConsumer puller = puller(stage, queue);
        fill(stage, queue);
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        CompletableFuture<String> sent = inBackground(() -> {
            session.createProducer(queue).send(message(session, FULL + 1), DeliveryMode.NON_PERSISTENT, 4, 100);
            session.createProducer(null).close();
            return null;
        });
        Thread.sleep(2 * Stage.SHORT_MS);
        takeOne(stage, puller);
        ends(stage, "one more", sent);
        left(stage, puller);
    }

    private static void unbounded(Stage stage) throws Exception {
        ActiveMQQueue queue = new ActiveMQQueue(stage.own(".uncontrolled"));
        MessageConsumer puller = puller(stage, queue);
        fill(stage, queue);
        CompletableFuture<String> sent = sending(stage, queue);
        waits(stage, "one more", sent);
        takeOne(stage, puller);
        ends(stage, "one more", sent);
        left(stage, puller);
    }

    private static void fails(Stage stage) throws Exception {
        ActiveMQTopic topic = new ActiveMQTopic(stage.own(".failing"));
        MessageConsumer puller = puller(stage, topic);
        fill(stage, topic);
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(topic);
        stage.attempt("one more", () -> {
            producer.send(message(session, FULL + 1));
            return null;
        });
        takeOne(stage, puller);
        stage.attempt("again", () -> {
            producer.send(message(session, FULL + 2));
            return null;
        });
        left(stage, puller);
    }

    private static void failsLater(Stage stage) throws Exception {
        ActiveMQTopic topic = new ActiveMQTopic(stage.own(".failing"));
        MessageConsumer puller = puller(stage, topic);
        fill(stage, topic);
        ActiveMQConnection connection = stage.connect();
        CompletableFuture<String> told = new CompletableFuture<>();
        connection.setExceptionListener(error -> told.complete(Stage.classes(error)));
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(topic);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        stage.attempt("one more", () -> {
            producer.send(message(session, FULL + 1));
            return null;
        });
        ends(stage, "the listener", told);
        stage.attempt("the connection goes on", () -> session.createConsumer(stage.queue()));
        left(stage, puller);
    }

    private static void failsInTransaction(Stage stage) throws Exception {
        ActiveMQTopic topic = new ActiveMQTopic(stage.own(".failing"));
        MessageConsumer puller = puller(stage, topic);
        fill(stage, topic);
        Session session = stage.connect().createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(topic);
        producer.send(message(session, FULL + 1));
        stage.attempt("commit", () -> {
            session.commit();
            return null;
        });
        left(stage, puller);
    }

    /** Of a topic only senders that want no answer wait so long and no longer. */
    private static void failsAfter(Stage stage) throws Exception {
        ActiveMQTopic topic = new ActiveMQTopic(stage.own(".waiting"));
        MessageConsumer puller = puller(stage, topic);
        fill(stage, topic);
        ActiveMQConnection connection = stage.connect();
        CompletableFuture<String> told = new CompletableFuture<>();
        connection.setExceptionListener(error -> told.complete(Stage.classes(error)));
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(topic);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        long began = System.nanoTime();
        producer.send(message(session, FULL + 1));
        ends(stage, "the listener", told);
        stage.say("after a while: %s", System.nanoTime() - began >= TimeUnit.MILLISECONDS.toNanos(SENDER_WAITS_MS * 9 / 10));
        takeOne(stage, puller);
        producer.setDeliveryMode(DeliveryMode.PERSISTENT);
        stage.attempt("again", () -> {
            producer.send(message(session, FULL + 2));
            return null;
        });
        left(stage, puller);
    }

    /** Whether what a policy says about senders counts for those that want an answer. */
    private static void policy(Stage stage, ActiveMQDestination queue) throws Exception {
        MessageConsumer puller = puller(stage, queue);
        fill(stage, queue);
        CompletableFuture<String> sent = sending(stage, queue);
        try {
            stage.say("one more: %s", sent.get(3 * SENDER_WAITS_MS, TimeUnit.MILLISECONDS));
        } catch (TimeoutException notYet) {
            stage.say("one more: waits");
        }
        takeOne(stage, puller);
        ends(stage, "one more", sent);
        left(stage, puller);
    }

    private static void slow(Stage stage, ActiveMQDestination destination, boolean told) throws Exception {
        MessageConsumer watching = Advisories.watch(stage, AdvisorySupport.getSlowConsumerAdvisoryTopic(destination));
        ActiveMQConnection connection = stage.connect();
        connection.getPrefetchPolicy().setAll(2);
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(destination);
        stage.send(destination, 8);
        Stage.ready(consumer, 2);
        if (told) {
            Advisories.tell(stage, "slow", watching);
        }
        stage.nothing("told again", watching);
    }

    private static void slowSubscriber(Stage stage) throws Exception {
        ActiveMQTopic topic = new ActiveMQTopic(stage.own(".watched"));
        MessageConsumer watching =
                Advisories.watch(stage, AdvisorySupport.getSlowConsumerAdvisoryTopic((ActiveMQDestination) topic));
        ActiveMQConnection connection = stage.connectAs("interop.slow");
        connection.getPrefetchPolicy().setAll(2);
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createDurableSubscriber(topic, "s");
        stage.send(topic, 8);
        Stage.ready(consumer, 2);
        Advisories.tell(stage, "slow", watching);
        stage.nothing("told again", watching);
        consumer.close();
        session.unsubscribe("s");
    }

    private static void discarded(Stage stage, int mode) throws Exception {
        ActiveMQTopic topic = new ActiveMQTopic(stage.own(".kept"));
        MessageConsumer watching =
                Advisories.watch(stage, AdvisorySupport.getMessageDiscardedAdvisoryTopic((ActiveMQDestination) topic));
        ActiveMQConnection connection = stage.connect();
        connection.getPrefetchPolicy().setAll(1);
        MessageConsumer consumer = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE).createConsumer(topic);
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
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
