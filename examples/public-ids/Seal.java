// Public IDs of flake without the database: reads lines `secret,id,uuid,text` as tests/vectors/seal.csv has them, and writes them
// computed anew, the IDs that the UUIDs stand for where no ID is given.
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Scanner;
import java.util.UUID;
import javax.crypto.Cipher;
import javax.crypto.spec.SecretKeySpec;

public class Seal {
    static final String DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";

    static boolean isMarked(UUID block) {
        return (block.getMostSignificantBits() >> 12 & 15) == 8 && block.getLeastSignificantBits() >>> 62 == 2;
    }

    static UUID walk(int mode, byte[] secret, UUID block) throws Exception {
        Cipher aes = Cipher.getInstance("AES/ECB/NoPadding");
        aes.init(mode, new SecretKeySpec(secret, "AES"));
        do {
            ByteBuffer bytes = ByteBuffer.allocate(16).putLong(block.getMostSignificantBits()).putLong(block.getLeastSignificantBits());
            ByteBuffer next = ByteBuffer.wrap(aes.update(bytes.array()));
            block = new UUID(next.getLong(), next.getLong());
        } while (!isMarked(block));
        return block;
    }

    static UUID seal(byte[] secret, long id) throws Exception {
        UUID plain = new UUID(id >>> 16 << 16 | 8 << 12 | id >> 4 & 0xfff, 2L << 62 | (id & 15) << 58);
        return walk(Cipher.ENCRYPT_MODE, secret, plain);
    }

    static Long unseal(byte[] secret, UUID block) throws Exception {
        if (!isMarked(block)) return null;
        UUID plain = walk(Cipher.DECRYPT_MODE, secret, block);
        long high = plain.getMostSignificantBits(), low = plain.getLeastSignificantBits();
        return low << 6 != 0 ? null : (Long) (high >>> 16 << 16 | (high & 0xfff) << 4 | low >>> 58 & 15);
    }

    static String text(UUID block) {
        BigInteger number = new BigInteger(block.toString().replace("-", ""), 16);
        StringBuilder text = new StringBuilder();
        for (int n = 125; n >= 0; n -= 5) text.append(DIGITS.charAt(number.shiftRight(n).intValue() & 31));
        return text.toString();
    }

    public static void main(String[] arguments) throws Exception {
        for (Scanner lines = new Scanner(System.in); lines.hasNextLine(); ) {
            String[] line = lines.nextLine().split(",", -1);
            byte[] secret = HexFormat.of().parseHex(line[0]);
            UUID block = line[1].isEmpty() ? UUID.fromString(line[2]) : seal(secret, Long.parseLong(line[1]));
            Long id = unseal(secret, block);
            System.out.println(String.join(",", line[0], id == null ? "" : id.toString(), block.toString(), id == null ? "" : text(block)));
        }
    }
}
