import type { ConversationId, Event, TenantId } from '../../events/index.ts';
import type { ConversationKey, ConversationLine, Store } from '../../store/store.ts';
import { readPages } from '../log/read-log.ts';
import { createPersonsWords, type PersonsWords } from './erased-words.ts';
import { eachText } from './hole.ts';

/** In which conversations a person has spoken, and what followed from it. */
export interface Survey {
  /** Conversations and threads that are connected with one in which the person has spoken. */
  near: ReadonlySet<ConversationId>;
  /** Ids of turns that answered the person, of tasks that these turns gave, of turns that answered those, and so on. */
  causes: ReadonlySet<string>;
  words: PersonsWords;
}

/** Called for each conversation that is read. */
export type OnRead = (conversation: ConversationId) => void;

export function isBy({ author }: Pick<Event, 'author'>, person: string): boolean {
  return author.kind === 'user' && author.id === person;
}

export async function* conversationsOf(
  store: Pick<Store, 'listConversations'>,
  tenant: TenantId,
): AsyncGenerator<ConversationKey> {
  for await (const { id } of linesOf(store, tenant)) yield { tenant, conversation: id };
}

/** All conversations of a tenant with heads and times, newest first. */
export async function* linesOf(
  store: Pick<Store, 'listConversations'>,
  tenant: TenantId,
): AsyncGenerator<ConversationLine> {
  for (let before: Parameters<Store['listConversations']>[1]['before']; ;) {
    const page = await store.listConversations(tenant, { limit: 100, ...(before && { before }) });
    yield* page.conversations;
    if (!page.next) return;
    before = page.next;
  }
}

type Reading = Pick<Store, 'listConversations' | 'readPage'>;

/** Reads every log of the tenant twice, because words that others used before the person are not the person's. */
export async function survey(
  { store, countTokens }: { store: Reading; countTokens: (text: string) => number },
  tenant: TenantId,
  person: string,
  onRead: OnRead,
): Promise<Survey> {
  const { hasSpoken, links, causes } = await readCauses(store, tenant, person, onRead);
  const near = connected(hasSpoken, links);
  const theirs = following(causes);
  const words = createPersonsWords((word) => countTokens(` ${word}`) <= 1);
  const isTheirs = (event: Event) => isBy(event, person) || theirs.has(originOf(event) ?? '');
  for (const conversation of hasSpoken)
    for await (const events of readPages(store, { tenant, conversation }, { after: 0 }))
      for (const event of events) {
        if (!isBy(event, person) || event.erased !== undefined) continue;
        words.addName(event.author.name);
        eachText(event, (text) => words.add(text, event.at));
      }
  for await (const log of conversationsOf(store, tenant)) {
    onRead(log.conversation);
    for await (const events of readPages(store, log, { after: 0 }))
      for (const event of events) {
        if (isTheirs(event)) continue;
        // A person in an unconnected conversation cannot have a word from this person, so it is not this person's.
        const isElsewhere = event.author.kind === 'user' && !near.has(log.conversation);
        eachText(event, (text) => words.exclude(text, isElsewhere ? -1 : event.at));
      }
  }
  return { near, causes: theirs, words };
}

/** By the id of a turn or task, the turns and tasks whose events it took in. `null`: it took in words of the person. */
type Causes = Map<string, Set<string | null>>;

async function readCauses(store: Reading, tenant: TenantId, person: string, onRead: OnRead) {
  const hasSpoken = new Set<ConversationId>();
  const links: [ConversationId, ConversationId][] = [];
  const causes: Causes = new Map();
  for await (const log of conversationsOf(store, tenant)) {
    onRead(log.conversation);
    const origins = new Map<number, string | null>();
    for await (const events of readPages(store, log, { after: 0 }))
      for (const event of events) {
        if (isBy(event, person)) hasSpoken.add(log.conversation);
        const origin = isBy(event, person) ? null : originOf(event);
        if (origin !== undefined) origins.set(event.seq, origin);
        if (event.kind === 'delegation.opened') {
          links.push([event.body.home, event.body.thread]);
          if (event.turn !== undefined) noteCause(causes, event.body.delegation, event.turn);
        }
        if (event.turn !== undefined)
          for (const seq of inputsOf(event)) noteCause(causes, event.turn, origins.get(seq));
      }
  }
  return { hasSpoken, links, causes };
}

/** Id of the turn that an event belongs to, or of the task that it opens or ends. */
export function originOf({ turn, body }: Event): string | undefined {
  return turn ?? ('delegation' in body ? body.delegation : undefined);
}

function inputsOf(event: Event): readonly number[] {
  if (event.kind === 'turn.started' || event.kind === 'turn.steered') return event.body.inputs;
  return 'covers' in event.body ? event.body.covers : [];
}

function noteCause(causes: Causes, of: string, cause: string | null | undefined): void {
  if (cause === undefined || cause === of) return;
  causes.set(of, (causes.get(of) ?? new Set()).add(cause));
}

/** The turns and tasks that took in words of the person, directly or through other turns and tasks. */
function following(causes: Causes): Set<string> {
  const found = new Set<string>();
  for (let before = -1; found.size > before;) {
    before = found.size;
    for (const [each, origins] of causes)
      if ([...origins].some((origin) => origin === null || found.has(origin))) found.add(each);
  }
  return found;
}

function connected(
  from: ReadonlySet<ConversationId>,
  links: readonly [ConversationId, ConversationId][],
): Set<ConversationId> {
  const found = new Set(from);
  for (let before = -1; found.size > before;) {
    before = found.size;
    for (const [home, thread] of links) {
      if (found.has(home)) found.add(thread);
      else if (found.has(thread)) found.add(home);
    }
  }
  return found;
}
