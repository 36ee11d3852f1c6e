import { expect, test } from 'vitest';
import { loadAgents } from '../../../src/providers/agents-package.ts';
import type { AgentsPackage } from '../../../src/providers/agents-package.ts';
import * as agents from '../src/index.ts';

test('the package has what the core loads by its name', async () => {
  const loaded: AgentsPackage = agents;
  expect(await loadAgents('codex')).toBe(loaded);
});

test('a program that is not installed is named with the command that installs it', () => {
  // TROUPE_PEERS is searched first; no other place has this program.
  const find = () => agents.findProgram('codex', { TROUPE_PEERS: '/nowhere' });
  expect(find).toThrow(
    /^the codex provider needs the package @openai\/codex, which is not installed: npm install/,
  );
});
