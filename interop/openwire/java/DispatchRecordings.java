package interop;

import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.command.ActiveMQQueue;

/** Who gets what, one short conversation for each rule. */
final class DispatchRecordings implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("exclusive", DispatchRecordings::owner);
        cases.accept("exclusive-takeover", DispatchRecordings::takeover);
        cases.accept("exclusive-127", DispatchRecordings::highest);
        cases.accept("exclusive-in-delivery", DispatchRecordings::inDelivery);
        cases.accept("exclusive-selector", DispatchRecordings::selector);
        cases.accept("exclusive-closed", stage -> death(stage, true));
        cases.accept("exclusive-lost", stage -> death(stage, false));
        cases.accept("all-exclusive", DispatchRecordings::allExclusive);
        cases.accept("groups", DispatchRecordings::groups);
        cases.accept("two-consumers-first", DispatchRecordings::two);
        cases.accept("strict-order", DispatchRecordings::strict);
        cases.accept("priorities-off", DispatchRecordings::equal);
        cases.accept("priorities", DispatchRecordings::priorities);
        cases.accept("turns", DispatchRecordings::turns);
    }

    private static ActiveMQQueue with(Stage stage, String options) {
        return new ActiveMQQueue(stage.own("") + "?" + options);
    }

    /** Each consumer has a session of its own, so that all of them dispatch on their own. */
    private static MessageConsumer consumer(Connection connection, Destination destination) throws JMSException {
        return connection.createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(destination);
    }

    private static MessageConsumer exclusive(Stage stage, Connection connection, int priority) throws JMSException {
        return consumer(connection, with(stage, "consumer.exclusive=true&consumer.priority=" + priority));
    }

    private static void send(Connection connection, Destination destination, int first, int last)
            throws JMSException {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Recording.send(session, destination, first, last);
        session.close();
    }

    /** A shared consumer that came first gets nothing until there is no exclusive one left. */
    private static void owner(Stage stage) throws JMSException {
        Connection connection = Recording.open(stage);
        MessageConsumer shared = consumer(connection, stage.queue());
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer owner = session.createConsumer(with(stage, "consumer.exclusive=true"));
        MessageConsumer next = exclusive(stage, connection, 0);
        send(connection, stage.queue(), 1, 5);
        Recording.receive(owner, 2);
        owner.close();
        Recording.receive(next, 5);
        next.close();
        send(connection, stage.queue(), 6, 7);
        Recording.receive(shared, 2);
        connection.close();
    }

    private static void takeover(Stage stage) throws JMSException {
        Connection connection = Recording.open(stage);
        MessageConsumer first = exclusive(stage, connection, 5);
        send(connection, stage.queue(), 1, 2);
        Recording.receive(first, 2);
        exclusive(stage, connection, 1);
        exclusive(stage, connection, 5);
        send(connection, stage.queue(), 3, 4);
        Recording.receive(first, 2);
        MessageConsumer higher = exclusive(stage, connection, 6);
        send(connection, stage.queue(), 5, 6);
        Recording.receive(higher, 2);
        connection.close();
    }

    private static void highest(Stage stage) throws JMSException {
        Connection connection = Recording.open(stage);
        MessageConsumer first = exclusive(stage, connection, 127);
        send(connection, stage.queue(), 1, 2);
        Recording.receive(first, 2);
        MessageConsumer second = exclusive(stage, connection, 127);
        send(connection, stage.queue(), 3, 4);
        Recording.receive(second, 2);
        connection.close();
    }

    private static void inDelivery(Stage stage) throws Exception {
        Connection connection = Recording.open(stage);
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer low = session.createConsumer(with(stage, "consumer.exclusive=true&consumer.priority=1"));
        send(connection, stage.queue(), 1, 5);
        Recording.receive(low, 2);
        Stage.ready(low, 3);
        MessageConsumer high = exclusive(stage, connection, 9);
        send(connection, stage.queue(), 6, 8);
        Recording.receive(high, 3);
        Recording.receive(low, 3);
        low.close();
        Recording.receive(high, 5);
        connection.close();
    }

    private static void selector(Stage stage) throws JMSException {
        Connection connection = Recording.open(stage);
        MessageConsumer other = consumer(connection, stage.queue());
        MessageConsumer owner = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)
                .createConsumer(with(stage, "consumer.exclusive=true"), "n = 1");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        for (int number = 0; number < 4; number++) {
            Message message = session.createTextMessage("m" + number);
            message.setIntProperty("n", number % 2);
            session.createProducer(stage.queue()).send(message);
        }
        Recording.receive(owner, 2);
        owner.close();
        Recording.receive(other, 2);
        connection.close();
    }

    /** Two of five were seen by the owner; its connection is closed, or breaks. */
    private static void death(Stage stage, boolean orderly) throws Exception {
        ActiveMQConnection dying = Recording.openAs(stage, "recorder-1");
        ActiveMQConnection living = Recording.openAs(stage, "recorder-2");
        Session session = dying.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer owner = session.createConsumer(with(stage, "consumer.exclusive=true"));
        MessageConsumer next = exclusive(stage, living, 0);
        send(living, stage.queue(), 1, 5);
        Recording.receive(owner, 2);
        Stage.ready(owner, 3);
        if (orderly) {
            dying.close();
        } else {
            dying.getTransport().stop();
        }
        Recording.receive(next, 5);
        send(living, stage.queue(), 6, 6);
        Recording.receive(next, 1);
        living.close();
    }

    private static void allExclusive(Stage stage) throws JMSException {
        Connection connection = Recording.open(stage);
        Destination queue = stage.queue(".exclusive");
        MessageConsumer first = consumer(connection, queue);
        MessageConsumer second = consumer(connection, queue);
        send(connection, queue, 1, 3);
        Recording.receive(first, 3);
        first.close();
        send(connection, queue, 4, 5);
        Recording.receive(second, 2);
        connection.close();
    }

    private static void groups(Stage stage) throws JMSException {
        Connection connection = Recording.open(stage);
        MessageConsumer[] consumers = {consumer(connection, stage.queue()), consumer(connection, stage.queue())};
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        for (String named : new String[] {"a 0", "b 0", "a 0", "b 0", "a -1", "b 0"}) {
            Message message = session.createTextMessage(named);
            message.setStringProperty("JMSXGroupID", named.substring(0, 1));
            message.setIntProperty("JMSXGroupSeq", Integer.parseInt(named.substring(2)));
            session.createProducer(stage.queue()).send(message);
        }
        for (MessageConsumer one : consumers) {
            Recording.receive(one, 3);
        }
        connection.close();
    }

    private static void two(Stage stage) throws JMSException {
        Connection connection = Recording.open(stage, "jms.prefetchPolicy.all=2");
        Destination queue = stage.queue(".two");
        send(connection, queue, 1, 4);
        MessageConsumer first = consumer(connection, queue);
        first.receive(Stage.SHORT_MS);
        MessageConsumer second = consumer(connection, queue);
        Recording.receive(first, 2);
        Recording.receive(second, 2);
        connection.close();
    }

    private static void strict(Stage stage) throws Exception {
        Connection connection = Recording.open(stage, "jms.prefetchPolicy.all=2");
        Destination queue = stage.queue(".strict");
        Session one = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer first = one.createConsumer(queue);
        MessageConsumer second = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE).createConsumer(queue);
        send(connection, queue, 1, 4);
        Recording.receive(first, 1);
        Recording.receive(second, 1);
        second.close();
        first.close();
        MessageConsumer third = consumer(connection, queue);
        Recording.receive(third, 4);
        connection.close();
    }

    private static void equal(Stage stage) throws JMSException {
        Connection connection = Recording.open(stage);
        String name = stage.own(".equal") + "?consumer.priority=";
        MessageConsumer low = consumer(connection, new ActiveMQQueue(name + 1));
        MessageConsumer high = consumer(connection, new ActiveMQQueue(name + 7));
        send(connection, stage.queue(".equal"), 1, 4);
        Recording.receive(low, 2);
        Recording.receive(high, 2);
        connection.close();
    }

    /** The higher one fills its prefetch; the rest spills. */
    private static void priorities(Stage stage) throws Exception {
        Connection connection = Recording.open(stage, "jms.prefetchPolicy.all=3");
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer low = session.createConsumer(with(stage, "consumer.priority=1"));
        MessageConsumer high = session.createConsumer(with(stage, "consumer.priority=7"));
        send(connection, stage.queue(), 1, 6);
        Stage.ready(low, 3);
        Stage.ready(high, 3);
        connection.close();
    }

    private static void turns(Stage stage) throws JMSException {
        Connection connection = Recording.open(stage);
        MessageConsumer[] consumers = new MessageConsumer[3];
        for (int index = 0; index < consumers.length; index++) {
            consumers[index] = consumer(connection, stage.queue());
        }
        send(connection, stage.queue(), 1, 6);
        for (MessageConsumer one : consumers) {
            Recording.receive(one, 2);
        }
        connection.close();
    }
}
