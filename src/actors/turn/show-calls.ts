import { agentAuthor, type ToolCall } from '../../events/index.ts';
import { ArgumentsRedactor } from './redact-turn.ts';
import { showActivity } from './show-activity.ts';
import type { TurnRun } from './turn-run.ts';

/** A call of which watchers were told. */
interface Written {
  name: string;
  shown: string;
  /** Null: nothing is hidden. */
  redactor: ArgumentsRedactor | null;
  isWhole: boolean;
}

/** Longest arguments that are shown as they grow, in characters. */
const MAX_GROWING = 65_536;

/**
 * Shows the calls of an answer to watchers as the model writes them.
 *  A1  With a redaction, arguments are shown value by value, as they are stored.
 *  A2  Of a call, what was held back or never came in pieces is shown when it is whole.
 *  A3  Calls that never become whole are dropped at the end.
 */
export function showCalls(run: TurnRun) {
  const { redaction } = run.deps;
  const where = { kind: 'step' as const, author: agentAuthor(run.runtime.profile) };
  const calls = new Map<string, Written>();

  function begun(id: string, name: string): Written {
    const known = calls.get(id);
    if (known) return known;
    const redactor = redaction
      ? new ArgumentsRedactor((text) => redaction.text(text, where), MAX_GROWING)
      : null;
    const written = { name, shown: '', redactor, isWhole: false };
    calls.set(id, written);
    return written;
  }

  function show(id: string, written: Written, text: string): void {
    const index = written.shown.length;
    const piece = text.slice(0, MAX_GROWING - index);
    written.shown += piece;
    showActivity(run, { kind: 'arguments', call: id, name: written.name, index, text: piece });
  }

  return {
    write(id: string, name: string, text: string): void {
      const isNew = !calls.has(id);
      const written = begun(id, name);
      if (written.isWhole || written.shown.length >= MAX_GROWING) return;
      const clean = written.redactor ? written.redactor.push(text) : text;
      if (isNew || clean !== '') show(id, written, clean);
    },
    /** A whole call: what of its arguments was not shown yet. */
    call({ id, name, args }: ToolCall): void {
      const isNew = !calls.has(id);
      const written = begun(id, name);
      if (written.isWhole) return;
      written.isWhole = true;
      const { shown } = written;
      if (shown.length >= MAX_GROWING) return;
      const clean = redaction ? redaction.json(args, where) : args;
      if (isNew || (clean.length > shown.length && clean.startsWith(shown)))
        show(id, written, clean.slice(shown.length));
    },
    /** The model has finished its answer. */
    end(): void {
      for (const [call, { name, isWhole }] of calls)
        if (!isWhole) showActivity(run, { kind: 'dropped', call, name });
    },
  };
}
