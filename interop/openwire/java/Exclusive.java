package interop;

import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.command.ActiveMQQueue;

/** Exclusive consumers, priorities, and what follows the owner's death. */
final class Exclusive implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("first exclusive owns", Exclusive::firstOwns);
        cases.accept("exclusive beats an earlier shared one", Exclusive::beatsShared);
        cases.accept("higher priority takes over", stage -> takeover(stage, 1, 5));
        cases.accept("equal priority does not", stage -> takeover(stage, 5, 5));
        cases.accept("lower priority does not", stage -> takeover(stage, 5, 1));
        cases.accept("priority 127 always takes over", stage -> takeover(stage, 127, 127));
        cases.accept("takeover leaves what is in delivery", Exclusive::inDelivery);
        cases.accept("owner with a selector holds others back", Exclusive::selector);
        cases.accept("nobody exclusive left", Exclusive::sharedAgain);
        for (String death : new String[] {"close consumer", "close session", "close connection", "cut"}) {
            for (int prefetch : new int[] {1, 10, 1000}) {
                cases.accept("owner dies by " + death + " prefetch " + prefetch, stage -> dies(stage, death, prefetch));
            }
            cases.accept("transacted owner dies by " + death, stage -> transactedDies(stage, death));
        }
        for (String when : new String[] {
            "before anything was sent", "with nothing seen", "with all seen", "with some acknowledged", "after a rollback",
        }) {
            for (String death : new String[] {"close consumer", "close connection", "cut"}) {
                cases.accept("owner dies " + when + " by " + death, stage -> diesAt(stage, when, death));
            }
        }
        cases.accept("highest exclusive inherits", Exclusive::inherits);
        cases.accept("shared of high priority does not inherit", Exclusive::sharedHigh);
        cases.accept("browser beside an owner", Exclusive::browsing);
        cases.accept("exclusive by connection", Exclusive::byConnection);
        cases.accept("all exclusive by default", Exclusive::allByDefault);
        cases.accept("priorities without exclusive", Exclusive::priorities);
        cases.accept("priorities spill", Exclusive::spill);
        cases.accept("priorities switched off", Exclusive::equal);
        cases.accept("equal consumers take turns", Exclusive::turns);
        cases.accept("strict order", Exclusive::strict);
        cases.accept("dispatch starts with two", Exclusive::two);
        cases.accept("exclusive on a topic means nothing", Exclusive::onTopic);
    }

    private static ActiveMQQueue with(Stage stage, String options) {
        return new ActiveMQQueue(stage.own("") + "?" + options);
    }

    private static Session open(Stage stage, String... options) throws JMSException {
        return stage.connect(options).createSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    private static MessageConsumer exclusive(Stage stage, int priority) throws JMSException {
        return open(stage).createConsumer(with(stage, "consumer.exclusive=true&consumer.priority=" + priority));
    }

    private static void firstOwns(Stage stage) throws JMSException {
        MessageConsumer first = exclusive(stage, 0);
        MessageConsumer second = exclusive(stage, 0);
        stage.send(stage.queue(), 6);
        stage.receive("first", first, 6);
        stage.nothing("second", second);
    }

    private static void beatsShared(Stage stage) throws JMSException {
        MessageConsumer shared = open(stage).createConsumer(stage.queue());
        stage.send(stage.queue(), 2);
        stage.receive("shared", shared, 2);
        MessageConsumer owner = exclusive(stage, 0);
        stage.send(stage.queue(), 3, 6);
        stage.receive("owner", owner, 4);
        stage.nothing("shared", shared);
    }

    private static void takeover(Stage stage, int old, int young) throws JMSException {
        MessageConsumer first = exclusive(stage, old);
        stage.send(stage.queue(), 3);
        stage.receive("first", first, 3);
        MessageConsumer second = exclusive(stage, young);
        stage.send(stage.queue(), 4, 6);
        boolean moved = young == 127 || young > old;
        stage.receive(moved ? "second" : "first", moved ? second : first, 3);
        stage.nothing(moved ? "first" : "second", moved ? first : second);
    }

    private static void inDelivery(Stage stage) throws Exception {
        Session low = stage.connect().createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer first = low.createConsumer(with(stage, "consumer.exclusive=true&consumer.priority=1"));
        stage.send(stage.queue(), 5);
        stage.receive("low", first, 1);
        MessageConsumer second = exclusive(stage, 9);
        stage.send(stage.queue(), 6, 8);
        stage.receive("high", second, 3);
        stage.receive("low", first, 4);
        first.close();
        stage.receive("high gets what low gave back", second, 5);
    }

    private static void selector(Stage stage) throws JMSException {
        MessageConsumer owner = open(stage).createConsumer(with(stage, "consumer.exclusive=true"), "n = 1");
        MessageConsumer other = open(stage).createConsumer(stage.queue());
        Session session = open(stage);
        MessageProducer producer = session.createProducer(stage.queue());
        for (int number = 0; number < 4; number++) {
            Message message = session.createTextMessage("m" + number);
            message.setIntProperty("n", number % 2);
            producer.send(message);
        }
        stage.receive("owner", owner, 2);
        stage.nothing("owner", owner);
        stage.nothing("other", other);
        owner.close();
        stage.receive("other after the owner left", other, 2);
    }

    private static void sharedAgain(Stage stage) throws JMSException {
        MessageConsumer first = open(stage, "jms.prefetchPolicy.all=1").createConsumer(stage.queue());
        MessageConsumer second = open(stage, "jms.prefetchPolicy.all=1").createConsumer(stage.queue());
        MessageConsumer owner = exclusive(stage, 0);
        stage.send(stage.queue(), 2);
        stage.receive("owner", owner, 2);
        owner.close();
        stage.send(stage.queue(), 3, 4);
        stage.receive("first", first, 1);
        stage.receive("second", second, 1);
    }

    private static void dies(Stage stage, String death, int prefetch) throws Exception {
        Cut cut = new Cut(stage.host(), stage.port());
        ActiveMQConnection connection = stage.started(
                stage.own(""), Stage.url("127.0.0.1", cut.port(), "jms.prefetchPolicy.all=" + prefetch));
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer owner = session.createConsumer(with(stage, "consumer.exclusive=true"));
        MessageConsumer next = exclusive(stage, 0);
        stage.send(stage.queue(), 8);
        stage.receive("owner", owner, 2);
        Stage.barrier(connection);
        Stage.ready(owner, Math.min(prefetch, 6));
        die(stage, death, connection, session, owner, cut);
        stage.receive("next", next, 8);
        stage.nothing("and no more", next);
        cut.close();
    }

    /** The highest exclusive one of those that wait inherits, whatever the owner had done. */
    private static void diesAt(Stage stage, String when, String death) throws Exception {
        Cut cut = new Cut(stage.host(), stage.port());
        ActiveMQConnection connection = stage.started(stage.own(""), Stage.url("127.0.0.1", cut.port(),
                "jms.prefetchPolicy.all=10", "jms.redeliveryPolicy.initialRedeliveryDelay=0"));
        boolean rollsBack = when.equals("after a rollback");
        Session session = connection.createSession(rollsBack, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer owner = session.createConsumer(with(stage, "consumer.exclusive=true&consumer.priority=5"));
        MessageConsumer low = exclusive(stage, 1);
        MessageConsumer high = exclusive(stage, 3);
        MessageConsumer shared = open(stage).createConsumer(with(stage, "consumer.priority=100"));
        int left = 6;
        if (!when.equals("before anything was sent")) {
            stage.send(stage.queue(), 6);
            Stage.ready(owner, 6);
        }
        if (when.equals("with all seen")) {
            stage.receive("owner", owner, 6);
        } else if (when.equals("with some acknowledged")) {
            owner.receive(Stage.LONG_MS);
            owner.receive(Stage.LONG_MS).acknowledge();
            stage.receive("owner", owner, 1);
            left = 4;
        } else if (rollsBack) {
            stage.receive("owner", owner, 2);
            session.rollback();
            Stage.ready(owner, 6);
        }
        Stage.barrier(connection);
        die(stage, death, connection, session, owner, cut);
        if (when.equals("before anything was sent")) {
            stage.send(stage.queue(), 6);
        }
        stage.receive("high", high, left);
        stage.nothing("low", low);
        stage.nothing("shared", shared);
        cut.close();
    }

    private static void die(
            Stage stage, String death, Connection connection, Session session, MessageConsumer owner, Cut... cut)
            throws Exception {
        if (death.equals("close consumer")) {
            owner.close();
        } else if (death.equals("close session")) {
            session.close();
        } else if (death.equals("close connection")) {
            connection.close();
        } else {
            cut[0].cut();
            stage.gone(stage.own(""));
        }
    }

    private static void transactedDies(Stage stage, String death) throws Exception {
        Cut cut = new Cut(stage.host(), stage.port());
        ActiveMQConnection connection =
                stage.started(stage.own(""), Stage.url("127.0.0.1", cut.port(), "jms.prefetchPolicy.all=4"));
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer owner = session.createConsumer(with(stage, "consumer.exclusive=true"));
        MessageConsumer next = exclusive(stage, 0);
        stage.send(stage.queue(), 8);
        stage.receive("owner", owner, 2);
        session.commit();
        stage.receive("owner", owner, 2);
        Stage.ready(owner, 4);
        Stage.barrier(connection);
        die(stage, death, connection, session, owner, cut);
        if (death.equals("close consumer")) {
            // The session keeps what its consumer saw until its transaction ends.
            stage.nothing("next", next);
            session.commit();
            stage.receive("next after commit", next, 4);
        } else {
            stage.receive("next", next, 6);
        }
        stage.nothing("and no more", next);
        connection.close();
        cut.close();
    }

    private static void inherits(Stage stage) throws JMSException {
        MessageConsumer owner = exclusive(stage, 9);
        MessageConsumer low = exclusive(stage, 1);
        MessageConsumer high = exclusive(stage, 5);
        MessageConsumer sameAsHigh = exclusive(stage, 5);
        owner.close();
        stage.send(stage.queue(), 2);
        stage.receive("high", high, 2);
        high.close();
        stage.send(stage.queue(), 3, 4);
        stage.receive("the other high", sameAsHigh, 2);
        sameAsHigh.close();
        stage.send(stage.queue(), 5, 6);
        stage.receive("low", low, 2);
    }

    private static void sharedHigh(Stage stage) throws JMSException {
        MessageConsumer owner = exclusive(stage, 0);
        MessageConsumer shared = open(stage).createConsumer(with(stage, "consumer.priority=100"));
        MessageConsumer low = exclusive(stage, 0);
        stage.send(stage.queue(), 2);
        stage.receive("owner", owner, 2);
        owner.close();
        stage.send(stage.queue(), 3, 4);
        stage.receive("low", low, 2);
        stage.nothing("shared", shared);
    }

    private static void browsing(Stage stage) throws JMSException {
        MessageConsumer owner = stage.connect("jms.prefetchPolicy.all=1")
                .createSession(false, Session.CLIENT_ACKNOWLEDGE)
                .createConsumer(with(stage, "consumer.exclusive=true"));
        stage.send(stage.queue(), 4);
        stage.receive("owner", owner, 1);
        stage.browse("browsed", stage.queue());
    }

    private static void byConnection(Stage stage) throws JMSException {
        MessageConsumer first = open(stage, "jms.exclusiveConsumer=true").createConsumer(stage.queue());
        MessageConsumer second = open(stage).createConsumer(stage.queue());
        stage.send(stage.queue(), 4);
        stage.receive("first", first, 4);
        stage.nothing("second", second);
    }

    private static void allByDefault(Stage stage) throws JMSException {
        Destination queue = stage.queue(".exclusive");
        MessageConsumer first = open(stage).createConsumer(queue);
        MessageConsumer second = open(stage).createConsumer(queue);
        stage.send(queue, 4);
        stage.receive("first", first, 4);
        stage.nothing("second", second);
        first.close();
        stage.send(queue, 5, 6);
        stage.receive("second", second, 2);
    }

    private static void priorities(Stage stage) throws JMSException {
        MessageConsumer low = open(stage).createConsumer(with(stage, "consumer.priority=1"));
        MessageConsumer high = open(stage).createConsumer(with(stage, "consumer.priority=7"));
        stage.send(stage.queue(), 4);
        stage.receive("high", high, 4);
        stage.nothing("low", low);
        high.close();
        stage.send(stage.queue(), 5, 6);
        stage.receive("low", low, 2);
    }

    private static void spill(Stage stage) throws JMSException {
        Connection connection = stage.connect("jms.prefetchPolicy.all=3");
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer low = session.createConsumer(with(stage, "consumer.priority=1"));
        MessageConsumer high = session.createConsumer(with(stage, "consumer.priority=7"));
        stage.send(stage.queue(), 8);
        stage.receive("low", low, 1);
        stage.receive("high", high, 1);
        stage.browse("all are there", stage.queue());
        high.close();
        low.close();
        stage.drain("left", stage.queue());
    }

    private static void equal(Stage stage) throws JMSException {
        String options = "?consumer.priority=";
        MessageConsumer low = open(stage).createConsumer(new ActiveMQQueue(stage.own(".equal") + options + 1));
        MessageConsumer high = open(stage).createConsumer(new ActiveMQQueue(stage.own(".equal") + options + 7));
        stage.send(stage.queue(".equal"), 4);
        stage.receive("low", low, 2);
        stage.receive("high", high, 2);
    }

    private static void turns(Stage stage) throws JMSException {
        MessageConsumer[] consumers = new MessageConsumer[3];
        for (int index = 0; index < 3; index++) {
            consumers[index] = open(stage).createConsumer(stage.queue());
        }
        stage.send(stage.queue(), 9);
        for (int index = 0; index < 3; index++) {
            stage.receive("consumer " + index, consumers[index], 3);
        }
    }

    private static void strict(Stage stage) throws Exception {
        Session first = stage.connect("jms.prefetchPolicy.all=2").createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Session second = stage.connect("jms.prefetchPolicy.all=2").createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer one = first.createConsumer(stage.queue(".strict"));
        MessageConsumer two = second.createConsumer(stage.queue(".strict"));
        stage.send(stage.queue(".strict"), 4);
        stage.receive("one", one, 1);
        stage.receive("two", two, 1);
        two.close();
        // Room for one more, as one message was seen.
        Stage.ready(one, 2);
        one.close();
        stage.drain("left", stage.queue(".strict"));
    }

    private static void two(Stage stage) throws JMSException {
        stage.send(stage.queue(".two"), 4);
        MessageConsumer first = open(stage, "jms.prefetchPolicy.all=2").createConsumer(stage.queue(".two"));
        stage.nothing("one alone", first);
        MessageConsumer second = open(stage, "jms.prefetchPolicy.all=2").createConsumer(stage.queue(".two"));
        // Which of them gets which is not told: Classic may serve the first before the second has joined.
        stage.say("with two: %d and %d", count(first, 2), count(second, 2));
    }

    private static int count(MessageConsumer consumer, int most) throws JMSException {
        int count = 0;
        while (count < most && consumer.receive(Stage.LONG_MS) != null) {
            count++;
        }
        return count;
    }

    private static void onTopic(Stage stage) throws JMSException {
        Session session = open(stage);
        String name = stage.own("") + "?consumer.exclusive=true";
        MessageConsumer first = session.createConsumer(new org.apache.activemq.command.ActiveMQTopic(name));
        MessageConsumer second = session.createConsumer(stage.topic());
        stage.send(stage.topic(), 2);
        stage.receive("first", first, 2);
        stage.receive("second", second, 2);
    }
}
