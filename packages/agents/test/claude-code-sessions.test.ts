import { describe, test } from 'vitest';
import { type MakeSessions, sessionConformance } from '../../testing/src/session-conformance.ts';
import { childrenOf, HAS_CLAUDE_CODE, NO_CLAUDE_CODE, openStage, wordsOf } from './claude-code-stage.ts';
import { killProcesses } from '../../../test/providers/kill-processes.ts';

const make: MakeSessions = async (next) => {
  const stage = await openStage(next);
  const { server } = stage;
  return {
    provider: stage.provider,
    reopen: () => stage.reopen(),
    transcript: () => {
      const last = server.requests.at(-1);
      return last ? wordsOf(last) : '';
    },
    requests: () => server.requests.length,
    arrived: (number) => server.arrived(number),
    kill: () => killProcesses(childrenOf()),
    [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose](),
  };
};

describe.skipIf(!HAS_CLAUDE_CODE)(HAS_CLAUDE_CODE ? 'claude-code' : NO_CLAUDE_CODE, () => {
  for (const { group, name, ...rest } of sessionConformance(make))
    test(`${group}: ${name}`, () => rest.run());
});
