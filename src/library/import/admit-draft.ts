import { TroupeError } from '../../base/errors.ts';
import {
  type BaselineBody,
  type CompactionBody,
  type ConversationId,
  type EventDraft,
  type LiveItems,
  parseTurnId,
  turnOfRuntimeId,
  isAbout,
} from '../../events/index.ts';

/** Position of a draft in its file, and the conversation it is imported into. */
export interface DraftPlace {
  conversation: ConversationId;
  line: number;
  /** Lines read so far. */
  place: number;
}

/**
 * Prepares an exported event for a log: marks it as imported, so that it carries no authority (`events/import-rule.ts`),
 * and drops what another installation measured and what its runtime said in reminders. Throws `import_invalid`.
 *
 * No number in a log exceeds its own place, because each turn, epoch, step and compaction has events of its own. So
 * `place` bounds every count and every seq, and no imported summary can hide later events.
 */
export function admitDraft(draft: EventDraft, { conversation, line, place }: DraftPlace): EventDraft {
  for (const [name, number] of countsIn(draft, conversation)) {
    if (number <= place) continue;
    const message = `Line ${line}: ${name} ${number} of the event "${draft.id}" is beyond its place in the log (${place}); only a whole, unchanged export can be imported.`;
    throw new TroupeError('import_invalid', message, { line, id: draft.id, name, number });
  }
  const admitted = { ...draft, context: { ...draft.context, imported: true as const } };
  if (admitted.kind === 'turn.started')
    return { ...admitted, body: { ...admitted.body, live: timeOnly(admitted.body.live) } };
  if (admitted.kind !== 'turn.done') return admitted;
  // Token counts of another installation's provider would distort the calibration here.
  const { last: _last, ...body } = admitted.body;
  return { ...admitted, body };
}

const TIME = /^[\d:. TZ+-]{1,40}$/;

/** Of a reminder, which the runtime speaks, nothing of a file but a time. */
function timeOnly({ time }: LiveItems): LiveItems {
  return time !== undefined && TIME.test(time) ? { time } : {};
}

/** A number with its name for the error message. */
type Count = readonly [name: string, number: number];

function countsIn(draft: EventDraft, conversation: ConversationId): Count[] {
  const { id, turn, context } = draft;
  const turns = [turn, turnOfRuntimeId(id, conversation)].flatMap((each) => parseTurnId(each ?? '') ?? []);
  return [
    ...turns.map(({ number }) => ['turn', number] as const),
    ...named('memories', context?.memories),
    ...countsOfBody(draft),
  ];
}

function countsOfBody(draft: EventDraft): Count[] {
  if (!isAbout(draft, 'counts')) return [];
  switch (draft.kind) {
    case 'turn.started':
      return [['upTo', draft.body.upTo], ...named('inputs', draft.body.inputs)];
    case 'turn.steered':
      return [['upTo', draft.body.upTo], ['step', draft.body.step], ...named('inputs', draft.body.inputs)];
    case 'turn.done':
      return [['steps', draft.body.steps], ...named('covers', draft.body.covers)];
    case 'turn.failed':
    case 'turn.aborted':
      return named('covers', draft.body.covers);
    case 'step':
      return [['index', draft.body.index]];
    case 'compaction':
      return countsOfCompaction(draft.body);
    case 'baseline':
      return countsOfBaseline(draft.body);
    case 'command':
      return [...named('inputs', draft.body.inputs), ['from.seq', draft.body.from?.seq ?? 0]];
  }
}

function countsOfCompaction({ number, upTo, quotes, chosen }: CompactionBody): Count[] {
  const seqs = [...quotes, ...chosen].map(({ seq }) => seq);
  return [['number', number], ['upTo', upTo], ...named('seq', seqs)];
}

function countsOfBaseline({ epoch, adopts }: BaselineBody): Count[] {
  return [
    ['epoch', epoch],
    ['adopts.upTo', adopts?.upTo ?? 0],
    ['adopts.turn.steps', adopts?.turn?.steps ?? 0],
  ];
}

function named(name: string, numbers: readonly number[] = []): Count[] {
  return numbers.map((number) => [name, number] as const);
}
