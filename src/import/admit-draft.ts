import { TroupeError } from '../errors.ts';
import {
  type ConversationId,
  type EventDraft,
  parseTurnId,
  turnOfRuntimeId,
  isAbout,
} from '../events/index.ts';

/** Where a draft stands in its file, and where it goes. */
export interface DraftPlace {
  conversation: ConversationId;
  line: number;
  /** Lines read so far. */
  place: number;
}

/**
 * An event of an export as it may come into a log: marked as imported, so that it carries no authority
 * (`events/import-rule.ts`), and without what was measured elsewhere. Throws `import_invalid`.
 *
 * Nothing in a log points or counts beyond its own place: each turn, epoch, step and compaction has events of its own
 * before the next. So `place`, how many lines were read by then, bounds every number that counts on from here, and no
 * summary can hide what is said later.
 */
export function admitDraft(draft: EventDraft, { conversation, line, place }: DraftPlace): EventDraft {
  for (const [name, number] of countsIn(draft, conversation)) {
    if (number <= place) continue;
    const message = `Line ${line}: ${name} ${number} of the event "${draft.id}" is beyond its place in the log (${place}); only a whole, unchanged export can be imported.`;
    throw new TroupeError('import_invalid', message, { line, id: draft.id, name, number });
  }
  const admitted = { ...draft, context: { ...draft.context, imported: true as const } };
  if (admitted.kind !== 'turn.done') return admitted;
  // How another installation's provider counts says nothing of ours.
  const { last: _last, ...body } = admitted.body;
  return { ...admitted, body };
}

/** What a number is called in the message, and the number. */
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
    case 'compaction': {
      const { number, upTo, quotes, chosen } = draft.body;
      return [
        ['number', number],
        ['upTo', upTo],
        ...named(
          'seq',
          [...quotes, ...chosen].map(({ seq }) => seq),
        ),
      ];
    }
    case 'baseline': {
      const { epoch, adopts } = draft.body;
      return [
        ['epoch', epoch],
        ['adopts.upTo', adopts?.upTo ?? 0],
        ['adopts.turn.steps', adopts?.turn?.steps ?? 0],
      ];
    }
    case 'command':
      return [...named('inputs', draft.body.inputs), ['from.seq', draft.body.from?.seq ?? 0]];
  }
}

function named(name: string, numbers: readonly number[] = []): Count[] {
  return numbers.map((number) => [name, number] as const);
}
