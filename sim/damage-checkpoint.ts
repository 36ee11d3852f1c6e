import type { MemoryData } from './memory-documents.ts';

/** What happens to a stored checkpoint: it is lost, cut off, changed in one place, or of another version. */
const DAMAGES: readonly ((text: string, share: number) => string | null)[] = [
  () => null,
  (text, share) => text.slice(0, Math.floor(share * text.length)),
  (text, share) => flipped(text, Math.floor(share * text.length)),
  (text) => text.replace('\n', ' another\n'),
];

/** Damages one checkpoint. `size` chooses which, how and where, 0 <= size < 1. False if there is none. */
export function damageCheckpoint({ entries }: MemoryData, size: number): boolean {
  const keys = [...entries.keys()].filter((key) => key.includes('/checkpoint/'));
  const [key, inKey] = pickBy(keys, size);
  const [damage, inDamage] = pickBy(DAMAGES, inKey);
  const entry = key === undefined ? undefined : entries.get(key);
  if (key === undefined || !entry || !damage) return false;
  const text = damage(entry.data, inDamage);
  if (text === null) entries.delete(key);
  else entries.set(key, { ...entry, data: text });
  return true;
}

/** The element at this share of the list, and the rest of the share within it. */
function pickBy<T>(all: readonly T[], share: number): [T | undefined, number] {
  const at = share * all.length;
  return [all[Math.floor(at)], at % 1];
}

function flipped(text: string, at: number): string {
  return text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ 1) + text.slice(at + 1);
}
