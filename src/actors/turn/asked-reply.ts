import { Script } from 'node:vm';
import type { AskedReply } from '../../events/index.ts';
import { readySchema } from '../../tools/schema.ts';
import type { ReplySchema } from '../engine/agent-runtime.ts';

/**
 * The form in which the writer of a message wants the answer. The schema is of somebody outside: with patterns and choices
 * within choices a small one can take forever, so the work with it has an end. Throws if it cannot be checked.
 */
export function askedReply({ schema, calls }: AskedReply): ReplySchema {
  const ready = inTime(() => readySchema(withDraft(schema), 'output'));
  return {
    schema: ready.json,
    async check(value) {
      // Who has nothing to call may answer in words.
      if (calls === 'optional' && !('calls' in Object(value))) return { data: value };
      try {
        const checked = await inTime(() => ready.check(value));
        if ('value' in checked) return { data: checked.value };
        return { problem: checked.problems.slice(0, 3).join('; ') };
      } catch (error) {
        if ((error as { code?: unknown }).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
        return { problem: `checking it takes longer than ${LONGEST_MS} ms` };
      }
    },
  };
}

/** Clients name drafts in which their definitions would be elsewhere. */
function withDraft(schema: Record<string, unknown>): Record<string, unknown> {
  const $schema = 'definitions' in schema ? 'http://json-schema.org/draft-07/schema#' : undefined;
  return { ...schema, $schema };
}

const LONGEST_MS = 250;
const WORK = new Script('work()');

/** Runs what does not wait. The limit of a script also ends functions that it calls. */
function inTime<T>(work: () => T): T {
  return WORK.runInNewContext({ work }, { timeout: LONGEST_MS }) as T;
}
