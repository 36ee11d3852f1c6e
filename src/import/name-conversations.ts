import type { ConversationId } from '../events/index.ts';
import type { ContentEntry, Entry, NamedEntry } from './entry.ts';

const MAX_NAME = 128;

export type NameSource = { conversation?: string | undefined; fileName?: string | undefined };

/**
 * Gives each conversation its id: `<name>` for the only one, `<name>-1`, `<name>-2`, … for several. The first is held
 * back until a second one shows which it is; formats where one conversation is the whole file are never held.
 */
export async function* nameConversations(
  entries: AsyncIterable<Entry>,
  source: NameSource,
): AsyncGenerator<NamedEntry, void> {
  const base = source.conversation ?? fileStem(source.fileName ?? '');
  const taken = new Set<string>();
  let held: ContentEntry[] | null = null;
  let count = 0;
  for await (const entry of entries) {
    if (entry.kind !== 'begin') {
      if (held) held.push(entry);
      else yield entry;
      continue;
    }
    count += 1;
    if (count === 1 && !entry.alone) {
      held = [];
      continue;
    }
    if (held) {
      yield { kind: 'begin', conversation: conversationName(base, 1) };
      yield* held;
      held = null;
    }
    const own = source.conversation === undefined ? entry.name : null;
    const plain = conversationName(own ?? base, own !== null || count === 1 ? null : count);
    const conversation = taken.has(plain) ? conversationName(plain, count) : plain;
    taken.add(conversation);
    yield { kind: 'begin', conversation };
  }
  if (!held) return;
  yield { kind: 'begin', conversation: conversationName(base, null) };
  yield* held;
}

/** Any text as a conversation id; a valid one stays as it is. */
export function conversationName(text: string, number: number | null): ConversationId {
  const suffix = number === null ? '' : `-${number}`;
  const slug = text
    .replaceAll(/[^A-Za-z0-9._@:-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, MAX_NAME - suffix.length);
  return `${slug === '' ? 'import' : slug}${suffix}` as ConversationId;
}

function fileStem(fileName: string): string {
  const base = fileName.split(/[/\\]/).at(-1) ?? '';
  return base.replace(/(?<=.)\.[A-Za-z0-9]+$/, '');
}
