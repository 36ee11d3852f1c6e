import { describe, test } from 'vitest';
import { sessionConformance } from '../../testing/src/session-conformance.ts';
import { NO_CODEX, startCodexStage } from './codex-stage.ts';

describe.skipIf(NO_CODEX !== '')(`codex sessions${NO_CODEX}`, () => {
  for (const { group, name, ...rest } of sessionConformance((next) => startCodexStage(next)))
    test(`${group}: ${name}`, () => rest.run());
});
