import { cpuMs, storedBytes } from './measures.ts';
import { textOf } from './texts.mjs';

/**
 * One scene with one peer, in this process: `play.mjs PEER SCENE SIZE DIR`. Prints an object of numbers. Scenes:
 *  turn   p50 in ms of a turn behind `SIZE` messages, and the processor time of one
 *  fill   nothing but `SIZE` messages in the store, for `cold`
 *  cold   ms from the opening of the store that `fill` left to the end of the first turn
 *  many   turns per second of `SIZE` conversations of three turns, 64 at once; resident memory when it was open, and at most
 *  rally  calls and characters sent to the model while two agents speak by turns, `SIZE` turns
 *  bytes  stored bytes per turn, over `SIZE` turns
 */
const [, , name = '', scene = '', size = '0', dir = ''] = process.argv;
const count = Number(size);
const LONGEST_MS = 30_000;
const MIB = 2 ** 20;
const importing = performance.now();
const { open } = await import(`./peers/${name}.mjs`);
const importMs = performance.now() - importing;

const SCENES = {
  async turn(peer) {
    for (let index = 0; index < 60; index++) await peer.turn('warm-up', 'left', textOf(index));
    // A short conversation would soon be a long one: each turn has its own, which is warm from two turns before.
    const isShort = count < 100;
    const of = (index) => (isShort ? `measured-${index}` : 'measured');
    const turns = count > 5_000 ? 40 : 120;
    for (const each of new Set(Array.from({ length: turns }, (_, index) => of(index)))) {
      await peer.fill(each, isShort ? count - 4 : count);
      for (let index = 0; index < (isShort ? 2 : 5); index++) await peer.turn(each, 'left', textOf(index));
    }
    const before = cpuMs();
    const times = [];
    // Half a minute shows what a turn takes, however slow it is.
    const began = performance.now();
    for (let index = 0; index < turns && performance.now() - began < LONGEST_MS; index++) {
      const start = performance.now();
      await peer.turn(of(index), 'left', textOf(index));
      times.push(performance.now() - start);
    }
    const cpu = (cpuMs() - before) / times.length;
    return {
      p50Ms: times.toSorted((a, b) => a - b)[times.length >> 1],
      cpuMs: cpu,
      messages: peer.sent.messages,
    };
  },
  async fill(peer) {
    await peer.fill('measured', count);
    await peer.turn('measured', 'left', textOf(0));
    return {};
  },
  async cold(peer, opened) {
    await peer.turn('measured', 'left', textOf(1));
    return { firstTurnMs: performance.now() - opened, importMs, messages: peer.sent.messages };
  },
  async many(peer) {
    const rssStartMb = process.memoryUsage.rss() / MIB;
    await conversations(peer, 'warm-up', Math.min(100, count));
    const before = cpuMs();
    const start = performance.now();
    await conversations(peer, 'measured', count);
    const seconds = (performance.now() - start) / 1_000;
    const cpu = (cpuMs() - before) / (count * 3);
    const rssPeakMb = (process.resourceUsage().maxRSS * 1_024) / MIB;
    return { turnsPerSecond: (count * 3) / seconds, cpuMs: cpu, rssStartMb, rssPeakMb };
  },
  async rally(peer) {
    for (let index = 0; index < count; index++)
      await peer.turn('measured', index % 2 === 0 ? 'left' : 'right', textOf(index));
    return { calls: peer.sent.calls, kiloChars: peer.sent.chars / 1_000 };
  },
  async bytes(peer) {
    await peer.turn('measured', 'left', textOf(0));
    await peer.close();
    const before = storedBytes(dir);
    const again = await open(dir);
    for (let index = 0; index < count; index++) await again.turn('measured', 'left', textOf(index));
    await again.close();
    return { bytesPerTurn: (storedBytes(dir) - before) / count };
  },
};

async function conversations(peer, prefix, all) {
  let next = 0;
  const client = async () => {
    while (next < all) {
      const conversation = `${prefix}-${next++}`;
      for (let turn = 0; turn < 3; turn++) await peer.turn(conversation, 'left', textOf(turn));
    }
  };
  await Promise.all(Array.from({ length: 64 }, client));
}

const opened = performance.now();
const peer = await open(dir);
const figures = await SCENES[scene](peer, opened);
console.log(JSON.stringify(figures));
process.exit(0);
