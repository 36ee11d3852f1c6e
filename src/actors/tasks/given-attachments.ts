import {
  type Attachment,
  attachmentName,
  type Event,
  MAX_ATTACHED_BYTES,
  MAX_MESSAGE_ATTACHMENTS,
  nearestName,
} from '../../events/index.ts';
import type { TurnRun } from '../attempt/turn-run.ts';
import { createLogFolds, type LogFolds, type PageSource } from '../log/read-log.ts';
import { eventsAt, originsOf } from '../log/read-turn.ts';

/** What a task is given, or why it cannot be. */
type Given = { attachments: readonly Attachment[] } | { refusal: string };

/**
 * The attachments that a task takes along: the named ones, else those of what began the work of the turn, the newest up to the limits
 * of a message. Agents know them by the names that prompts show.
 */
export async function attachmentsFor(run: TurnRun, names: readonly string[] | undefined): Promise<Given> {
  if (names === undefined) return { attachments: withinLimits(await begun(run)) };
  if (names.length === 0) return { attachments: [] };
  return named(run, names);
}

async function begun({ deps, live, turn }: TurnRun): Promise<Attachment[]> {
  const seqs = [...turn.inputs, ...(turn.steered ?? []).flatMap(({ inputs }) => inputs)];
  const inputs = await eventsAt(deps, live.address, seqs);
  const origins = await originsOf(deps, inputs, { leavesThread: false });
  return origins.flatMap(attachmentsIn);
}

/** Of several messages that have a name, the newest that the turn has seen counts, with all that it has under the name. */
async function named({ deps, live, turn }: TurnRun, names: readonly string[]): Promise<Given> {
  const upTo = Math.max(turn.upTo, ...(turn.steered ?? []).map(({ upTo: last }) => last));
  const places = await foldsOf(deps.store).of(live.address);
  const newest = (name: string) => places.get(name)?.findLast((seq) => seq <= upTo);
  const found: Attachment[] = [];
  for (const name of new Set(names.map(attachmentKey))) {
    const seq = newest(name);
    if (seq === undefined) {
      const known = [...places.keys()].filter((each) => newest(each) !== undefined);
      return { refusal: unknown(name, known) };
    }
    const [event] = await eventsAt(deps, live.address, [seq]);
    found.push(...(event ? attachmentsIn(event).filter((each) => attachmentName(each) === name) : []));
  }
  const { length } = withinLimits(found);
  if (length === found.length) return { attachments: found };
  const most = `${MAX_MESSAGE_ATTACHMENTS} attachments of ${MAX_ATTACHED_BYTES / 1_024 / 1_024} MB together`;
  return { refusal: `a task takes at most ${most}: name fewer` };
}

/** Most names in a refusal. */
const MOST_NAMES = 50;

function unknown(name: string, known: readonly string[]): string {
  if (known.length === 0) return `there is no attachment "${name}": this conversation has none.`;
  const nearest = nearestName(name, known);
  const maybe = nearest ? ` Did you mean "${nearest}"?` : '';
  const more = known.length > MOST_NAMES ? `, and ${known.length - MOST_NAMES} older ones` : '';
  return `there is no attachment "${name}".${maybe} Known: ${known.slice(-MOST_NAMES).toReversed().join(', ')}${more}.`;
}

function attachmentKey(name: string): string {
  return attachmentName({ name: name.trim(), mediaType: '' });
}

/** What agents see attached: notices are for people. */
function attachmentsIn(event: Event): readonly Attachment[] {
  const isHere = event.kind === 'delegation.opened' && event.body.thread === event.conversation;
  return (event.kind === 'message' || isHere) && event.erased === undefined
    ? (event.body.attachments ?? [])
    : [];
}

/** The newest that a message could have. */
function withinLimits(attachments: readonly Attachment[]): Attachment[] {
  let room = MAX_ATTACHED_BYTES;
  const kept: Attachment[] = [];
  for (const each of attachments.toReversed()) {
    room -= each.type === 'text' ? Buffer.byteLength(each.text) : each.bytes;
    if (room < 0 || kept.length === MAX_MESSAGE_ATTACHMENTS) break;
    kept.push(each);
  }
  return kept.reverse();
}

/** Seqs of the events that have an attachment of a name, by name; the name used last comes last. */
type Places = Map<string, number[]>;

/** Most logs whose names are kept for the next task. */
const KEPT = 64;

const folds = new WeakMap<PageSource, LogFolds<Places>>();

/** Made when a name is first asked for: nobody else reads a log for it. */
function foldsOf(store: PageSource): LogFolds<Places> {
  const known =
    folds.get(store) ?? createLogFolds<Places>(store, { begin: () => new Map(), fold: note, kept: KEPT });
  folds.set(store, known);
  return known;
}

function note(places: Places, event: Event): void {
  for (const name of new Set(attachmentsIn(event).map(attachmentName))) {
    const seqs = places.get(name) ?? [];
    places.delete(name);
    places.set(name, [...seqs, event.seq]);
  }
}
