import { AnswerCleaner, agentLabel } from '../../context/index.ts';
import { agentAuthor, type Reasoning, type ToolCall } from '../../events/index.ts';
import type { ModelEvent } from '../../providers/provider.ts';
import { ArgumentsRedactor } from './redact-turn.ts';
import { tell } from './tell-live.ts';
import type { ModelAnswer, TurnRun } from './turn-run.ts';

/** What follows words that still wait: watchers see both in their order. */
const ENDS_WORDS: ReadonlySet<ModelEvent['type']> = new Set([
  'reasoning',
  'calling',
  'call',
  'done',
  'failed',
  'aborted',
]);

/** Longest reasoning, and longest arguments of a call, that are told as they grow, in characters. */
const MAX_GROWING = 65_536;

/**
 * Hears an answer as the model writes it: keeps its words without copied marks of the prompt, and tells watchers. What they
 * are told, piece by piece, is what is stored. Positions count from the beginning of the round. With a redaction, reasoning
 * is told when it is whole, as it is stored.
 */
export function hearAnswer(run: TurnRun) {
  const { deps, runtime } = run;
  const { redaction } = deps;
  const cleaner = new AnswerCleaner(agentLabel(runtime.profile.id), runtime.profile.framing);
  let text = '';
  let original = '';
  let thought = 0;
  /** Reasoning that waits until it is known whether it is of a step or of a message. */
  let untold: string | null = null;
  let calls: ReturnType<typeof hearCalls> | null = null;

  function say(piece: string): void {
    if (piece === '') return;
    const index = text.length;
    text += piece;
    tell(run, { type: 'text', index, text: piece });
  }

  function think(words: string): void {
    const piece = words.slice(0, MAX_GROWING - thought);
    if (piece === '') return;
    tell(run, { type: 'reasoning', index: thought, text: piece });
    thought += piece.length;
  }

  function thinkUntold(kind: 'step' | 'message'): void {
    const where = { kind, author: agentAuthor(runtime.profile) };
    if (untold !== null) think(redaction?.text(untold, where) ?? untold);
    untold = null;
  }

  return {
    /** Of every event, before it counts. */
    before(type: ModelEvent['type']): void {
      if (ENDS_WORDS.has(type)) say(cleaner.end());
    },
    text(delta: string): void {
      original += delta;
      say(cleaner.push(delta));
    },
    think(delta: string): void {
      if (!redaction) think(delta);
    },
    /** The whole reasoning. Nothing if it was told piece by piece. */
    reasoning(whole: Reasoning): void {
      if (thought > 0) return;
      if (redaction) untold = whole.text;
      else think(whole.text);
    },
    /** A piece of the arguments of a call. */
    write(id: string, name: string, delta: string): void {
      calls ??= hearCalls(run);
      calls.write(id, name, delta);
    },
    /** A whole call. */
    call(call: ToolCall): void {
      thinkUntold('step');
      calls ??= hearCalls(run);
      calls.call(call);
    },
    /** The model has finished its answer. */
    end(): void {
      if (untold !== null) thinkUntold('message');
      calls?.end();
    },
    said: (): Pick<ModelAnswer, 'text' | 'original'> => (original === text ? { text } : { text, original }),
  };
}

/** A call of which watchers were told. */
interface Written {
  name: string;
  told: string;
  /** Null: nothing is hidden. */
  redactor: ArgumentsRedactor | null;
  isWhole: boolean;
}

/**
 * Tells the calls of an answer as the model writes them.
 *  A1  With a redaction, arguments are told value by value, as they are stored.
 *  A2  Of a call, what was held back or never came in pieces is told when it is whole.
 *  A3  Calls that never become whole are dropped at the end.
 */
function hearCalls(run: TurnRun) {
  const { redaction } = run.deps;
  const where = { kind: 'step' as const, author: agentAuthor(run.runtime.profile) };
  const calls = new Map<string, Written>();

  function begun(id: string, name: string): Written {
    const known = calls.get(id);
    if (known) return known;
    const redactor = redaction
      ? new ArgumentsRedactor((text) => redaction.text(text, where), MAX_GROWING)
      : null;
    const written = { name, told: '', redactor, isWhole: false };
    calls.set(id, written);
    return written;
  }

  function grow(call: string, written: Written, text: string): void {
    const index = written.told.length;
    const piece = text.slice(0, MAX_GROWING - index);
    written.told += piece;
    tell(run, { type: 'arguments', call, name: written.name, index, text: piece });
  }

  return {
    write(id: string, name: string, text: string): void {
      const isNew = !calls.has(id);
      const written = begun(id, name);
      if (written.isWhole || written.told.length >= MAX_GROWING) return;
      const clean = written.redactor ? written.redactor.push(text) : text;
      if (isNew || clean !== '') grow(id, written, clean);
    },
    /** What of its arguments was not told yet. */
    call({ id, name, args }: ToolCall): void {
      const isNew = !calls.has(id);
      const written = begun(id, name);
      if (written.isWhole) return;
      written.isWhole = true;
      const { told } = written;
      if (told.length >= MAX_GROWING) return;
      const clean = redaction ? redaction.json(args, where) : args;
      if (isNew || (clean.length > told.length && clean.startsWith(told)))
        grow(id, written, clean.slice(told.length));
    },
    end(): void {
      for (const [call, { name, isWhole }] of calls) if (!isWhole) tell(run, { type: 'dropped', call, name });
    },
  };
}
