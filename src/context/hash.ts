import { createHmac, hash } from 'node:crypto';

/** 128 bits of SHA-256 as hex: short enough to store per layer, long enough never to collide. */
export function hashText(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 32);
}

/** A delimiter key that authors cannot guess and that never changes for the same place in the log. */
export function fenceKey(secret: string, place: string): string {
  return createHmac('sha256', secret).update(place).digest('hex').slice(0, 8);
}
