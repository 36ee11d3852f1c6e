import { expect, test } from 'vitest';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { handoffTool, readArtifactTool } from '../../src/tools/builtin/conversation.ts';
import { createToolContext } from '../../packages/testing/src/tool-context.ts';
import { runTool } from '../../src/tools/run-tool.ts';
import { toolSpec, type Tool } from '../../src/tools/tool.ts';

const ARTIFACTS: Record<string, string> = {
  lines: Array.from({ length: 500 }, (_, i) => `line ${i}`).join('\n'),
  wide: `short\n${'世'.repeat(20_000)}\nend`,
  'a/b': 'nested',
};

function run(tool: Tool, args: object) {
  const context = createToolContext({
    artifacts: { read: (id: string) => Promise.resolve(ARTIFACTS[id] ?? null) },
  });
  return runTool(tool, { id: 'c', name: tool.name, args: JSON.stringify(args) }, context, {
    clock: createFakeClock(),
  });
}

test('handoff requests a handoff with its summary', async () => {
  const result = await run(handoffTool('agent'), { to: '@bob', goal: 'ship', artifacts: ['x'] });
  const summary = {
    goal: 'ship',
    done: '',
    state: '',
    next: '',
    openQuestions: [],
    artifacts: ['x'],
    why: '',
  };
  expect(result).toEqual({
    outcome: 'done',
    text: 'Handed over to bob.',
    request: { kind: 'handoff', to: 'bob', summary },
  });
});

test('handoff needs a goal and an id', async () => {
  expect(await run(handoffTool('agent'), { to: 'bob' })).toMatchObject({
    outcome: 'failed',
    text: expect.stringContaining('goal'),
  });
  expect(await run(handoffTool('agent'), { to: 'b o b', goal: 'x' })).toMatchObject({ outcome: 'failed' });
});

test('the built-in tools have flat schemas and require only what they need', () => {
  expect(toolSpec(handoffTool('agent')).parameters['required']).toEqual(['to', 'goal']);
  expect(toolSpec(readArtifactTool).parameters['required']).toEqual(['id']);
});

test('read_artifact reads lines and says how to continue', async () => {
  const { text } = await run(readArtifactTool, { id: '@artifact/lines', offset: 10, limit: 2 });
  expect(text).toBe('line 10\nline 11\n[lines 10 to 11 of 500; continue with offset 12]');
  const last = await run(readArtifactTool, { id: 'lines', offset: 499 });
  expect(last.text).toBe('line 499\n[lines 499 to 499 of 500]');
  expect((await run(readArtifactTool, { id: 'lines', offset: 500 })).text).toContain('has 500 lines');
});

test('consecutive reads of read_artifact by bytes join without loss', async () => {
  let offset: number | undefined = 0;
  let whole = '';
  while (offset !== undefined) {
    const { text } = await run(readArtifactTool, { id: 'wide', unit: 'bytes', offset, limit: 10_000 });
    const note = text.lastIndexOf('\n[');
    whole += text.slice(0, note);
    const next = /continue with offset (\d+)/.exec(text.slice(note))?.[1];
    offset = next === undefined ? undefined : Number(next);
  }
  expect(whole).toBe(ARTIFACTS['wide']);
});

test('read_artifact refers from an overlong line to its bytes', async () => {
  const { text } = await run(readArtifactTool, { id: 'wide', offset: 1 });
  expect(Buffer.byteLength(text)).toBeLessThan(13_000);
  expect(text).toContain('continue with unit bytes, offset 12294');
});

test('read_artifact reports an unknown artifact by its id', async () => {
  expect(await run(readArtifactTool, { id: 'nope' })).toMatchObject({
    outcome: 'failed',
    text: expect.stringContaining('"nope"'),
  });
});
