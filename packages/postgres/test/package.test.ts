import { expect, test } from 'vitest';
import { POSTGRES_ALONE } from '../../../src/base/optional-packages.ts';
import { loadPostgres, type PostgresPackage } from '../../../src/library/runtime/services.ts';

test('the core loads the package by its name, and finds all that it needs of it', async () => {
  const own: PostgresPackage = await import('../src/index.ts');
  const loaded = await loadPostgres(POSTGRES_ALONE);
  expect(Object.keys(loaded).toSorted()).toEqual(Object.keys(own).toSorted());
});
