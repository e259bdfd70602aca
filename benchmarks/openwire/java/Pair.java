package bench;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageListener;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnectionFactory;

/** A producer and a consumer with a connection each and a queue of their own. */
final class Pair implements MessageListener {
    /** Places in flight change hands so many at a time; a semaphore for each message would be seen. */
    private static final int PLACES = 10;

    final Latencies delivery;
    final Latencies receipt;
    final Latencies sendLag;
    /** One producer writes it, others look whether it grows. */
    volatile int sent;
    volatile int received;
    volatile Throwable failure;
    volatile long producedAt;

    private final Job job;
    private final int number;
    private final Semaphore places;
    private final CountDownLatch consumed;
    private final byte[] filler;
    private final boolean timed;
    private Connection producing;
    private Connection consuming;
    private Session sending;
    private Session receiving;
    private MessageProducer producer;
    private MessageConsumer consumer;

    Pair(Job job, int number, CountDownLatch consumed) {
        this.job = job;
        this.number = number;
        this.consumed = consumed;
        timed = job.ratePerS > 0;
        places = new Semaphore(job.inFlightPerPair);
        filler = new byte[job.bodyBytes - Long.BYTES];
        int most = timed ? job.messagesPerPair : 0;
        delivery = new Latencies(most);
        receipt = new Latencies(most);
        sendLag = new Latencies(most);
    }

    void open() throws JMSException {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(job.user, job.password, job.url);
        factory.setOptimizeAcknowledge(job.optimizeAcknowledge);
        int mode = job.transacted ? Session.SESSION_TRANSACTED : Session.AUTO_ACKNOWLEDGE;
        consuming = factory.createConnection();
        receiving = consuming.createSession(job.transacted, mode);
        Queue queue = receiving.createQueue(job.queues + number);
        consumer = receiving.createConsumer(queue);
        consumer.setMessageListener(this);
        consuming.start();
        producing = factory.createConnection();
        sending = producing.createSession(job.transacted, mode);
        producer = sending.createProducer(queue);
        producer.setDeliveryMode(job.persistent ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
        producing.start();
    }

    /** Sends everything; a failure is kept. */
    void produce(long startedAt) {
        try {
            send(startedAt);
        } catch (Throwable error) {
            failure = error;
        }
        producedAt = System.nanoTime();
    }

    private void send(long startedAt) throws JMSException, InterruptedException {
        int together = job.dueTogether();
        // Pairs take turns, so that they are not all due at once.
        double gapNanos = timed ? 1e9 * together * job.pairs / job.ratePerS : 0;
        long firstDue = startedAt + (long) (gapNanos * number / job.pairs);
        long due = firstDue;
        for (int index = 0; index < job.messagesPerPair; index++) {
            if (timed) {
                if (index % together == 0) {
                    due = firstDue + (long) (gapNanos * (index / together));
                    sleepUntil(due);
                }
                sendLag.add(System.nanoTime() - due);
            } else if (index % PLACES == 0) {
                places.acquire(PLACES);
            }
            BytesMessage message = sending.createBytesMessage();
            message.writeLong(due);
            message.writeBytes(filler);
            producer.send(message);
            boolean last = index == job.messagesPerPair - 1;
            if (job.transacted && ((index + 1) % job.batch == 0 || last)) {
                sending.commit();
            }
            if (timed && job.persistent && ((index + 1) % together == 0 || last)) {
                receipt.add(System.nanoTime() - due);
            }
            sent = index + 1;
        }
    }

    private static void sleepUntil(long due) {
        long left;
        while ((left = due - System.nanoTime()) > 0) {
            LockSupport.parkNanos(left);
        }
    }

    @Override
    public void onMessage(Message message) {
        try {
            if (timed) {
                delivery.add(System.nanoTime() - ((BytesMessage) message).readLong());
            }
            int count = received + 1;
            boolean last = count == job.messagesPerPair;
            if (job.transacted && (count % job.batch == 0 || last)) {
                receiving.commit();
            }
            received = count;
            if (count % PLACES == 0) {
                places.release(PLACES);
            }
            if (last) {
                consumed.countDown();
            }
        } catch (Throwable error) {
            failure = error;
        }
    }

    /** Returns when the broker has every acknowledgement: a stop waits for the listener, a close for an answer. */
    void finish() throws JMSException {
        consuming.stop();
        consumer.close();
    }

    void close() {
        for (Connection connection : new Connection[] {producing, consuming}) {
            try {
                if (connection != null) {
                    connection.close();
                }
            } catch (JMSException gone) {
                // It is closed either way.
                continue;
            }
        }
    }
}
