/** Frames of zstd according to RFC 8878, made by hand because Node 20 cannot compress zstd. */
const MAGIC = Buffer.from('28b52ffd', 'hex');
/** A header without checksum and content size, with a window of 1 MB. */
const HEADER = Buffer.from([0x00, 0x50]);
const MAX_BLOCK = 131_072;
const RAW = 0;
const REPEATED = 1;

function block(type: number, bytes: number, isLast: boolean, content: Uint8Array): Buffer {
  const head = Buffer.alloc(3);
  head.writeUIntLE((bytes << 3) | (type << 1) | Number(isLast), 0, 3);
  return Buffer.concat([head, content]);
}

/** Makes a frame with uncompressed blocks, and compressed ones where a block repeats one byte. */
export function zstdOf(content: Buffer, firstBlock = MAX_BLOCK): Buffer {
  const blocks: Buffer[] = [];
  for (let at = 0, end = firstBlock; blocks.length === 0 || at < content.length; at = end, end += MAX_BLOCK) {
    const piece = content.subarray(at, end);
    const isRepeated = piece.length > 1 && piece.subarray(1).equals(piece.subarray(0, -1));
    const of = isRepeated ? piece.subarray(0, 1) : piece;
    blocks.push(block(isRepeated ? REPEATED : RAW, piece.length, end >= content.length, of));
  }
  return Buffer.concat([MAGIC, HEADER, ...blocks]);
}

/** Makes a frame of this many empty blocks. Each takes 3 bytes, and costs time to decode. */
export function zstdOfNothing(blocks: number): Buffer {
  const all = Buffer.alloc(blocks * 3);
  all.writeUInt8(1, (blocks - 1) * 3);
  return Buffer.concat([MAGIC, HEADER, all]);
}

/** Makes a frame that says how large a window its decoder needs (RFC 8878, section 3.1.1.1.2). */
export function zstdWithWindow(content: Buffer, windowLog: number): Buffer {
  const frame = Buffer.from(zstdOf(content));
  frame.writeUInt8((windowLog - 10) << 3, MAGIC.length + 1);
  return frame;
}

/** Makes a frame of this many blocks of 128 KB of one byte; each takes 4 bytes. */
export function zstdBomb(blocks: number, byte = 0x20): Buffer {
  const content = Buffer.from([byte]);
  const all = Array.from({ length: blocks }, (_, index) => block(REPEATED, MAX_BLOCK, index === blocks - 1, content));
  return Buffer.concat([MAGIC, HEADER, ...all]);
}

/** A call that `zstd -19` compressed to a seventh, with its checksum. */
export const COMPRESSED_CALL = Buffer.from(
  'KLUv/WSbEuUUANb9iSdwS5IO5KqKAMAh0LNvMaY1F/4zoY6eDijhHCvlljvJJGoIW+l/eAGpAHAAbgB1nDn2xlvhubBKkbhYhfBMeDv7c+ZsEW/imVnEJDbryqvyL+typqzxxTuLSMwqj2c5ZGAciwaHATZo4MMBcRDgsVgoyFDwqHDBwoWHARTgoIBgNFAsUDAaGAoCaFg8NCDwYBDBRgQbi8XBgBIUBSIYRwSjoeDhgHhwLBoPiQkHjgUKCIhjxmRIQDAOB42IBBEUDgkCSBwLHhSLAIeDAkWCDInF0dBwSEwIpfCKFNZRIbELi0zhmRXvUmyR4syLvYu3KZ6vEMIqJzwT4a2E/RDO3Nkq513n2c8i9LNuzqsj/kasC3GmiLUTX0S8m1hUIlbPSpkzxOzc/JB5Y7Nak3jMoivvVr5KWatypsqalP+prHPLIi3PprynbGPeP+arY9bs6sqarvznyqtyN1tZ5EpLeb+UrZarFlXLSJGyCpHyXFLe7PW/bPXlfVSeFTmZyrpzeVVc/sTkuqxZy1e1vJ/ctqzalDc15efjKWdmyo4dP3W8+bHqI/Eci8x4L+PrxpqNMzXWV/gHFBBQSHTqiB8f8cZ6GyMWVSHeXYgvs1eLWBdC/IkQr+7I6cQiRsSzE/EuEVvFxJmb2I+Jtyr1hkhcQ6ziIZ7vzBs5s/edmS1i5m0zz4yQ4mLWWZlXpMzfZdZHTEzu5r2I7hc6lczmDLHZsU3zpko1zaISPiggUlCVHhHQ1+z///8GGhXk/u3ypqwNIsXeuMH7itd4rPn0uRN8iHeMFoBemnlHst+xPPL/M7/ns17hCnLVyv1bZfIB+VbY39jGvktxRl37QuRwQnnS7sVFibRGr4drW1LOqB5wsWRYm0q0DKXEslwG65DAhQ==',
  'base64',
);
