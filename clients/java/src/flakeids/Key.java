package flakeids;

import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.util.UUID;
import javax.crypto.Cipher;
import javax.crypto.spec.SecretKeySpec;

/** A key of flake_create_key, which seals and opens public IDs without the database, as flake_seal and flake_unseal do. */
public final class Key {
    private static final String DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";
    private final String prefix;
    private final SecretKeySpec secret;

    /** The name of the key, and the 16 bytes of its secret. */
    public Key(String name, byte[] secret) {
        if (secret.length != 16) throw new IllegalArgumentException("a secret has 16 bytes");
        prefix = name + "_";
        this.secret = new SecretKeySpec(secret, "AES");
    }

    public String seal(long id) {
        UUID block = sealUuid(id);
        StringBuilder text = new StringBuilder(prefix);
        for (int at = 125; at >= 0; at -= 5) text.append(DIGITS.charAt(bits(block, at)));
        return text.toString();
    }

    /** Throws InvalidID if the text was not made with this key. */
    public long unseal(String text) {
        if (!text.startsWith(prefix) || text.length() != prefix.length() + 26) throw new FlakeException.InvalidID();
        long high = 0, low = 0;
        for (int n = prefix.length(); n < text.length(); n++) {
            int digit = DIGITS.indexOf(text.charAt(n));
            if (digit < 0 || n == prefix.length() && digit > 7) throw new FlakeException.InvalidID();
            high = high << 5 | low >>> 59;
            low = low << 5 | digit;
        }
        return unsealUuid(new UUID(high, low));
    }

    public UUID sealUuid(long id) {
        return walk(Cipher.ENCRYPT_MODE, new UUID(id >>> 16 << 16 | 8 << 12 | id >> 4 & 0xfff, 2L << 62 | (id & 15) << 58));
    }

    /** Throws InvalidID if the UUID was not made with this key. */
    public long unsealUuid(UUID block) {
        if (!isMarked(block)) throw new FlakeException.InvalidID();
        UUID plain = walk(Cipher.DECRYPT_MODE, block);
        long high = plain.getMostSignificantBits(), low = plain.getLeastSignificantBits();
        if (low << 6 != 0) throw new FlakeException.InvalidID();
        return high >>> 16 << 16 | (high & 0xfff) << 4 | low >>> 58 & 15;
    }

    private static int bits(UUID block, int at) {
        long high = block.getMostSignificantBits(), low = block.getLeastSignificantBits();
        long from = at >= 64 ? high >>> at - 64 : at > 59 ? low >>> at | high << 64 - at : low >>> at;
        return (int) from & 31;
    }

    private static boolean isMarked(UUID block) {
        return (block.getMostSignificantBits() >> 12 & 15) == 8 && block.getLeastSignificantBits() >>> 62 == 2;
    }

    private UUID walk(int mode, UUID block) {
        try {
            Cipher aes = Cipher.getInstance("AES/ECB/NoPadding");
            aes.init(mode, secret);
            do {
                ByteBuffer bytes = ByteBuffer.allocate(16).putLong(block.getMostSignificantBits()).putLong(block.getLeastSignificantBits());
                ByteBuffer next = ByteBuffer.wrap(aes.update(bytes.array()));
                block = new UUID(next.getLong(), next.getLong());
            } while (!isMarked(block));
            return block;
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException("this Java has no AES", impossible);
        }
    }
}
