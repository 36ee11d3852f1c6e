import { hash } from 'node:crypto';

/** Small pictures as written by an image library, each of a different size. */
export const PICTURES = {
  png: {
    mediaType: 'image/png',
    data: 'iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAEElEQVR4nGP8zwAFTDAGAwATKQED8NgHhAAAAABJRU5ErkJggg==',
  },
  jpeg: {
    mediaType: 'image/jpeg',
    data: '/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDACgcHiMeGSgjISMtKygwPGRBPDc3PHtYXUlkkYCZlo+AjIqgtObDoKrarYqMyP/L2u71////m8H////6/+b9//j/wgALCAAMAA0BAREA/8QAFQABAQAAAAAAAAAAAAAAAAAAAAP/2gAIAQEAAAABmP/EABQQAQAAAAAAAAAAAAAAAAAAACD/2gAIAQEAAQUCH//EABQQAQAAAAAAAAAAAAAAAAAAACD/2gAIAQEABj8CH//EABQQAQAAAAAAAAAAAAAAAAAAACD/2gAIAQEAAT8hH//aAAgBAQAAABAP/8QAFBABAAAAAAAAAAAAAAAAAAAAIP/aAAgBAQABPxAf/9k=',
  },
  gif: {
    mediaType: 'image/gif',
    data: 'R0lGODdhBwAGAIAAAAAAAAAAACwAAAAABwAGAAAIDQABCBxIsKDBgwgNBgQAOw==',
  },
  webp: {
    mediaType: 'image/webp',
    data: 'UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoJAAgABUB8JaQAA3AA/vCjQAA=',
  },
  losslessWebp: {
    mediaType: 'image/webp',
    data: 'UklGRh4AAABXRUJQVlA4TBEAAAAvCMABAAfQ//73v/+BiOh/AAA=',
  },
  extendedWebp: {
    mediaType: 'image/webp',
    data: 'UklGRlgAAABXRUJQVlA4WAoAAAAQAAAACgAACQAAQUxQSAoAAAABB9CxiAhERP8DVlA4ICgAAACQAQCdASoLAAoABUB8JaACdLoAA5gA/ujXHXlPibb/5mj9JvpN5gAA',
  },
} as const;

/** A unique PNG: decoders ignore the bytes behind the picture. */
export function pngNumber(n: number, bytes = 100): Buffer {
  const png = Buffer.from(PICTURES.png.data, 'base64');
  return Buffer.concat([png, Buffer.from(`${n} `.padEnd(bytes - png.length, '-'))]);
}

export function sha256(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'hex');
}
