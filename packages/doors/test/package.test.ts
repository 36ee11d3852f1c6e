import { expect, test } from 'vitest';
import { DOORS } from '../../../src/library/integrations/door.ts';
import {
  type DoorsPackage,
  loadStdioDoors,
  openDoors,
  type StdioDoors,
} from '../../../src/library/runtime/doors.ts';
import * as doors from '../src/index.ts';
import * as stdio from '../src/stdio.ts';

test('the package has what the core loads by its name', async () => {
  const loaded: [DoorsPackage, StdioDoors] = [doors, stdio];
  expect(await loadStdioDoors('troupe mcp')).toBe(loaded[1]);
  const opened = await openDoors(DOORS);
  expect(opened.map(({ name }) => name)).toEqual(DOORS);
});
