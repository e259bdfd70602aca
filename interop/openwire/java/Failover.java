package interop;

import java.util.HashMap;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;

/** The broker is killed and started again; clients with {@code failover:} go on. */
final class Failover implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("producer", Failover::producer);
        cases.accept("consumer AUTO beside a producer", Failover::both);
        cases.accept("consumer CLIENT", Failover::client);
        cases.accept("open transaction of a producer", Failover::sending);
        cases.accept("open transaction of a consumer", Failover::receiving);
        cases.accept("durable subscriber", Failover::durable);
        cases.accept("request and reply", Failover::requests);
        cases.accept("while the broker is away", Failover::away);
        cases.accept("exclusive owner", Failover::exclusive);
        cases.accept("moved in transactions", Failover::moved);
    }

    private static Connection connect(Stage stage, String clientId, String... options) throws JMSException {
        String nested = "tcp://" + stage.host() + ":" + stage.port();
        String more = options.length == 0 ? "" : "&" + String.join("&", options);
        return stage.started(clientId, "failover:(" + nested + ")?initialReconnectDelay=50&maxReconnectDelay=200"
                + "&useExponentialBackOff=false&jms.closeTimeout=5000" + more);
    }

    /** What was confirmed, against what is there. */
    private static void check(Stage stage, Map<String, Integer> seen, int confirmed) {
        int lost = 0;
        int doubled = 0;
        for (int number = 1; number <= confirmed; number++) {
            int times = seen.getOrDefault("m" + number, 0);
            lost += times == 0 ? 1 : 0;
            doubled += times > 1 ? 1 : 0;
        }
        stage.say("confirmed %d, lost %d, doubled %d, others %d", confirmed, lost, doubled,
                new TreeSet<>(seen.keySet()).size() - confirmed + lost);
    }

    private static Thread produce(Stage stage, Destination destination, int count, AtomicInteger confirmed) {
        Thread thread = new Thread(() -> {
            try {
                Session session = connect(stage, null).createSession(false, Session.AUTO_ACKNOWLEDGE);
                MessageProducer producer = session.createProducer(destination);
                for (int number = 1; number <= count; number++) {
                    producer.send(session.createTextMessage("m" + number));
                    confirmed.set(number);
                }
            } catch (JMSException error) {
                stage.say("producer: %s", Stage.classes(error));
            }
        });
        thread.start();
        return thread;
    }

    private static Map<String, Integer> take(Stage stage, Destination destination) throws JMSException {
        Map<String, Integer> seen = new HashMap<>();
        MessageConsumer consumer = stage.connect("jms.prefetchPolicy.all=0").createSession(false, 1)
                .createConsumer(destination);
        // Classic may say too early that there is nothing, so that it is asked once more.
        for (Message message = consumer.receive(2_000); message != null; message = consumer.receive(2_000)) {
            seen.merge(Stage.body(message), 1, Integer::sum);
        }
        return seen;
    }

    private static void producer(Stage stage) throws Exception {
        stage.allow(180_000);
        AtomicInteger confirmed = new AtomicInteger();
        Thread thread = produce(stage, stage.queue(), 600, confirmed);
        for (int at : new int[] {100, 300}) {
            Stage.until(() -> confirmed.get() >= at);
            Stage.harness("restart");
        }
        thread.join();
        check(stage, take(stage, stage.queue()), confirmed.get());
    }

    private static void both(Stage stage) throws Exception {
        stage.allow(180_000);
        Map<String, Integer> seen = new HashMap<>();
        CountDownLatch last = new CountDownLatch(1);
        connect(stage, null).createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(stage.queue())
                .setMessageListener(message -> {
                    try {
                        String text = Stage.body(message);
                        // An acknowledgement may be lost with the broker: then the message comes again.
                        seen.merge(text, message.getJMSRedelivered() ? 0 : 1, Integer::sum);
                        if (text.equals("m600")) {
                            last.countDown();
                        }
                    } catch (JMSException error) {
                        stage.say("listener: %s", Stage.classes(error));
                    }
                });
        AtomicInteger confirmed = new AtomicInteger();
        Thread thread = produce(stage, stage.queue(), 600, confirmed);
        Stage.until(() -> confirmed.get() >= 200);
        Stage.harness("restart");
        thread.join();
        Stage.await(last);
        int missing = 0;
        for (int number = 1; number <= 600; number++) {
            missing += seen.containsKey("m" + number) ? 0 : 1;
        }
        stage.say("confirmed %d, missing %d", confirmed.get(), missing);
    }

    private static void client(Stage stage) throws Exception {
        stage.allow(120_000);
        stage.send(stage.queue(), 6);
        Session session = connect(stage, null).createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        stage.receive("first", consumer, 1);
        Message second = consumer.receive(Stage.LONG_MS);
        second.acknowledge();
        stage.receive("third", consumer, 1);
        Stage.barrier(stage.connect());
        Stage.harness("restart");
        stage.send(stage.queue(), 7, 7);
        Map<String, Integer> seen = new HashMap<>();
        Message message = null;
        for (Message next = consumer.receive(5_000); next != null; next = consumer.receive(Stage.SHORT_MS)) {
            message = next;
            seen.merge(Stage.body(next), 1, Integer::sum);
        }
        stage.say("then %s", new TreeSet<>(seen.keySet()));
        stage.attempt("acknowledge", message::acknowledge);
        session.close();
        stage.drain("left", stage.queue());
    }

    private static void sending(Stage stage) throws Exception {
        stage.allow(120_000);
        Session session = connect(stage, null).createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(stage.queue());
        producer.send(session.createTextMessage("m1"));
        producer.send(session.createTextMessage("m2"));
        Stage.harness("restart");
        stage.attempt("send", () -> producer.send(session.createTextMessage("m3")));
        stage.attempt("commit", () -> session.commit());
        stage.drain("left", stage.queue());
    }

    private static void receiving(Stage stage) throws Exception {
        stage.allow(120_000);
        stage.send(stage.queue(), 4);
        Session session = connect(stage, null, "jms.redeliveryPolicy.initialRedeliveryDelay=0")
                .createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        stage.receive("first", consumer, 2);
        Stage.harness("restart");
        stage.attempt("commit", () -> session.commit());
        StringBuilder seen = new StringBuilder();
        for (Message next = consumer.receive(5_000); next != null; next = consumer.receive(Stage.SHORT_MS)) {
            seen.append(' ').append(Stage.body(next));
        }
        stage.say("then:%s", seen);
        stage.attempt("commit", () -> session.commit());
        session.close();
        stage.drain("left", stage.queue());
    }

    private static void durable(Stage stage) throws Exception {
        stage.allow(120_000);
        Session session = connect(stage, stage.own("")).createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createDurableSubscriber(stage.topic(), "s");
        stage.send(stage.topic(), 2);
        stage.receive("first", consumer, 2);
        Stage.harness("restart");
        stage.send(stage.topic(), 3, 4);
        Map<String, Integer> seen = new HashMap<>();
        while (!seen.containsKey("m4")) {
            seen.merge(Stage.body(consumer.receive(Stage.LONG_MS)), 1, Integer::sum);
        }
        stage.say("then has the new ones: %s", seen.containsKey("m3"));
    }

    private static void requests(Stage stage) throws Exception {
        stage.allow(120_000);
        Session answering = connect(stage, null).createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer replies = answering.createProducer(null);
        AtomicReference<String> failure = new AtomicReference<>();
        answering.createConsumer(stage.queue()).setMessageListener(request -> {
            try {
                replies.send(request.getJMSReplyTo(), answering.createTextMessage("re: " + Stage.body(request)));
            } catch (JMSException error) {
                failure.set(Stage.classes(error));
            }
        });
        Session session = connect(stage, null).createSession(false, Session.AUTO_ACKNOWLEDGE);
        Destination reply = session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(reply);
        MessageProducer producer = session.createProducer(stage.queue());
        for (int round = 1; round <= 2; round++) {
            Message request = session.createTextMessage("m" + round);
            request.setJMSReplyTo(reply);
            producer.send(request);
            Message answer = consumer.receive(Stage.LONG_MS);
            stage.say("round %d: %s, failure %s", round, answer == null ? "nothing" : Stage.body(answer), failure.get());
            if (round == 1) {
                // Or it would come again, maybe before the temporary queue does.
                Stage.until(() -> !session.createBrowser(stage.queue()).getEnumeration().hasMoreElements());
                Stage.harness("restart");
            }
        }
    }

    private static void away(Stage stage) throws Exception {
        stage.allow(120_000);
        Session session = connect(stage, null).createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(stage.queue());
        producer.send(session.createTextMessage("m1"));
        Stage.harness("kill");
        CountDownLatch sent = new CountDownLatch(1);
        Thread thread = new Thread(() -> {
            try {
                producer.send(session.createTextMessage("m2"));
                sent.countDown();
            } catch (JMSException error) {
                stage.say("send: %s", Stage.classes(error));
            }
        });
        thread.start();
        Thread.sleep(500);
        stage.say("sent while away: %s", sent.getCount() == 0);
        Stage.harness("start");
        Stage.await(sent);
        stage.drain("left", stage.queue());
    }

    private static void exclusive(Stage stage) throws Exception {
        stage.allow(120_000);
        Destination queue = new org.apache.activemq.command.ActiveMQQueue(
                stage.own("") + "?consumer.exclusive=true");
        MessageConsumer one = connect(stage, null).createSession(false, 1).createConsumer(queue);
        MessageConsumer two = connect(stage, null).createSession(false, 1).createConsumer(queue);
        stage.send(stage.queue(), 2);
        stage.receive("owner", one, 2);
        Stage.harness("restart");
        stage.send(stage.queue(), 3, 6);
        // Who comes back first owns the queue; what counts is that one gets all.
        int first = 0;
        int second = 0;
        for (int waited = 0; waited < 100 && first + second < 4; waited++) {
            first += one.receive(50) == null ? 0 : 1;
            second += two.receive(50) == null ? 0 : 1;
        }
        stage.say("one got all: %s", first == 4 && second == 0 || first == 0 && second == 4);
    }

    /** Whatever becomes of a commit in doubt, what was received and what was sent in it share its fate. */
    private static void moved(Stage stage) throws Exception {
        stage.allow(240_000);
        stage.send(stage.queue(".in"), 200);
        AtomicInteger committed = new AtomicInteger();
        Thread thread = new Thread(() -> {
            try {
                Session session = connect(stage, null, "jms.redeliveryPolicy.initialRedeliveryDelay=0",
                        "jms.redeliveryPolicy.redeliveryDelay=0", "jms.redeliveryPolicy.maximumRedeliveries=-1")
                        .createSession(true, Session.SESSION_TRANSACTED);
                MessageConsumer consumer = session.createConsumer(stage.queue(".in"));
                MessageProducer producer = session.createProducer(stage.queue(".out"));
                while (move(session, consumer, producer)) {
                    committed.addAndGet(5);
                }
            } catch (JMSException error) {
                stage.say("moving: %s", Stage.classes(error));
            }
        });
        thread.start();
        for (int at : new int[] {50, 120}) {
            Stage.until(() -> committed.get() >= at);
            Stage.harness("restart");
        }
        thread.join();
        check(stage, take(stage, stage.queue(".out")), 200);
        stage.drain("not moved", stage.queue(".in"));
    }

    /** Five messages in one transaction; false when there is nothing more. */
    private static boolean move(Session session, MessageConsumer consumer, MessageProducer producer)
            throws JMSException {
        boolean more = true;
        try {
            for (int index = 0; index < 5 && more; index++) {
                Message message = consumer.receive(5_000);
                more = message != null;
                if (more) {
                    producer.send(session.createTextMessage(Stage.body(message)));
                }
            }
            session.commit();
        } catch (JMSException rolledBack) {
            session.rollback();
            return true;
        }
        return more;
    }
}
