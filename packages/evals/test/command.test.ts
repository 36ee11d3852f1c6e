import { expect, test } from 'vitest';
import { type EvalsPackage, loadEvals } from '../../../src/cli/evals/evals-package.ts';
import * as command from '../src/command.ts';

test('the command finds by name what the package gives for it', async () => {
  const given: EvalsPackage = command;
  expect(Object.keys(await loadEvals()).toSorted()).toEqual(Object.keys(given).toSorted());
});
