import { expect, test } from 'vitest';
import { BUILTIN_TOOLS, type BuiltinTool } from '../../src/tools/builtin/index.ts';

test('the type of the names of built-in tools has each of them', () => {
  const names: Record<BuiltinTool, true> = {
    handoff: true,
    read_artifact: true,
    delegate: true,
    ask: true,
    follow_up: true,
    cancel_task: true,
    remind: true,
    todo: true,
    no_response: true,
    complete_step: true,
    fetch: true,
  };
  expect(Object.keys(names).toSorted()).toEqual([...BUILTIN_TOOLS].toSorted());
});
