import { expect, test } from 'vitest';
import { ResourceStack } from '../src/base/resource-stack.ts';

function failing(...messages: string[]): { stack: ResourceStack; closed: string[] } {
  const stack = new ResourceStack();
  const closed: string[] = [];
  for (const message of messages)
    stack.defer(() => {
      closed.push(message);
      if (message !== '') throw new Error(message);
    });
  return { stack, closed };
}

test('everything is closed in the reverse order, and the only failure is thrown as it is', async () => {
  const { stack, closed } = failing('', 'store', '');
  await expect(stack.close()).rejects.toEqual(new Error('store'));
  expect(closed).toEqual(['', 'store', '']);
});

test('no failure is lost among several', async () => {
  const { stack } = failing('store', '', 'queue');
  await expect(stack.close()).rejects.toMatchObject({
    message: '2 parts could not be closed: queue; store',
    errors: [new Error('queue'), new Error('store')],
  });
  // A second close has nothing left to close.
  await stack.close();
});
