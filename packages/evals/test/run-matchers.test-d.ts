import { expect } from 'vitest';
import type { ConversationRun } from '../src/index.ts';

/** The types of matchers; `npm run types` checks them. */
export function usesOfMatchers(run: ConversationRun): void {
  expect(run).toHaveWoken('desk', { by: /mia/ }, { times: 1 });
  expect(run).not.toHaveCalled(/desk|shipping/, 'track', { parcel: expect.any(String) as string });
  // @ts-expect-error There is no such matcher.
  expect(run).toHaveWaken('desk');
  // @ts-expect-error An agent is named by a text.
  expect(run).toHaveWoken(7);
  // @ts-expect-error There is no such bound.
  expect(run).toHaveTakenAtMost({ euros: 1 });
}
