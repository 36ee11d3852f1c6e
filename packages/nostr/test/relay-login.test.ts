import { expect, test } from 'vitest';
import type { SignedEvent } from '../src/nostr-event.ts';
import { RelayLogin } from '../src/relay-channel.ts';
import { createFakeClock } from '../../testing/src/fake-clock.ts';

/** A login whose signer answers on `signed` or `fails`. */
function openLogin() {
  const clock = createFakeClock();
  const asked: string[] = [];
  const sent: string[] = [];
  const failed: unknown[] = [];
  let settle: { resolve(event: SignedEvent): void; reject(error: Error): void } | null = null;
  const login = new RelayLogin({
    url: 'wss://relay.example',
    clock,
    authenticate: (challenge) => {
      asked.push(challenge);
      return new Promise((resolve, reject) => (settle = { resolve, reject }));
    },
    send: ({ id }) => void sent.push(id),
    failed: (error) => void failed.push(error),
  });
  login.connected();
  const signed = async () => {
    settle?.resolve({ id: `signed ${asked.at(-1)}` } as SignedEvent);
    await clock.advance(0);
  };
  const fails = async () => {
    settle?.reject(new Error('away'));
    await clock.advance(0);
  };
  return { login, clock, asked, sent, failed, signed, fails };
}

test('one challenge is signed at a time, then the newest, and no more than three', async () => {
  const { login, asked, sent, signed } = openLogin();
  const taken = ['a', 'b', 'c', 'd', 'e'].map((challenge) => login.challenged(challenge));
  expect(taken).toEqual([true, true, true, false, false]);
  expect(asked).toEqual(['a']);
  await signed();
  await signed();
  expect(asked).toEqual(['a', 'c']);
  expect(sent).toEqual(['signed c']);
  expect(login.answered('signed a', true)).toBe(false);
  expect(login.answered('signed c', true)).toBe(true);
  expect(login.isKnown).toBe(true);
});

test('a repeated challenge is signed again only if the signer failed', async () => {
  const { login, asked, failed, signed, fails } = openLogin();
  expect(login.challenged('a')).toBe(true);
  expect(login.challenged('a')).toBe(false);
  await fails();
  expect(failed).toHaveLength(1);
  expect(login.challenged('a')).toBe(true);
  await signed();
  expect(login.challenged('a')).toBe(false);
  expect(asked).toEqual(['a', 'a']);
});

test('a signer is asked again a minute after it failed', async () => {
  const { login, clock, asked, fails } = openLogin();
  for (const challenge of ['a', 'b', 'c']) {
    login.challenged(challenge);
    await fails();
  }
  expect(login.challenged('d')).toBe(false);
  await clock.advance(60_000);
  expect(login.challenged('d')).toBe(true);
  expect(asked).toEqual(['a', 'b', 'c', 'd']);
});

test('a login signed for a lost connection is not sent over the next', async () => {
  const { login, sent, signed } = openLogin();
  login.challenged('a');
  login.connected();
  login.challenged('b');
  await signed();
  expect(sent).toEqual([]);
  await signed();
  expect(sent).toEqual(['signed b']);
});
