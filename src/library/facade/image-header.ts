import type { ImageType } from '../../events/index.ts';

/** Type and size of an image, from its first bytes. */
interface ImageHeader {
  mediaType: ImageType;
  width: number;
  height: number;
}

/** Null if the bytes have none of the four formats, or end before the size. */
export function readImageHeader(data: Uint8Array): ImageHeader | null {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const found = readPng(bytes) ?? readJpeg(bytes) ?? readGif(bytes) ?? readWebp(bytes);
  return found && found.width > 0 && found.height > 0 ? found : null;
}

/** The signature and the header of the chunk that must come first. */
const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
const VP8_START = Buffer.from('9d012a', 'hex');

function readPng(bytes: Buffer): ImageHeader | null {
  if (bytes.length < 24 || !bytes.subarray(0, 16).equals(PNG)) return null;
  return { mediaType: 'image/png', width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

function readGif(bytes: Buffer): ImageHeader | null {
  if (bytes.length < 10 || !/^GIF8[79]a$/.test(bytes.toString('latin1', 0, 6))) return null;
  return { mediaType: 'image/gif', width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
}

/** The size is in the first frame header: SOF0 to SOF15 except DHT, JPG and DAC. */
function readJpeg(bytes: Buffer): ImageHeader | null {
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xffd8) return null;
  for (let at = 2; at + 9 <= bytes.length;) {
    const marker = bytes.readUInt16BE(at);
    if (marker === 0xffff) at += 1;
    else if (marker < 0xffc0) return null;
    else if (isFrame(marker)) {
      return {
        mediaType: 'image/jpeg',
        width: bytes.readUInt16BE(at + 7),
        height: bytes.readUInt16BE(at + 5),
      };
    } else at += 2 + bytes.readUInt16BE(at + 2);
  }
  return null;
}

function isFrame(marker: number): boolean {
  return marker >= 0xffc0 && marker <= 0xffcf && ![0xffc4, 0xffc8, 0xffcc].includes(marker);
}

function readWebp(bytes: Buffer): ImageHeader | null {
  const name = (from: number) => bytes.toString('latin1', from, from + 4);
  if (bytes.length < 30 || name(0) !== 'RIFF' || name(8) !== 'WEBP') return null;
  const sized = (width: number, height: number): ImageHeader => ({ mediaType: 'image/webp', width, height });
  switch (name(12)) {
    case 'VP8 ':
      if (!bytes.subarray(23, 26).equals(VP8_START)) return null;
      return sized(bytes.readUInt16LE(26) & 0x3fff, bytes.readUInt16LE(28) & 0x3fff);
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21);
      return bytes[20] === 0x2f ? sized((bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1) : null;
    }
    case 'VP8X':
      return sized(bytes.readUIntLE(24, 3) + 1, bytes.readUIntLE(27, 3) + 1);
    default:
      return null;
  }
}
