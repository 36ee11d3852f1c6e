import { messageText, percentile, report } from './support.ts';

/**
 * The other floor: an array in memory, copied for every request. Nothing survives. Argument: number of earlier
 * messages.
 */
const EVENTS = Number(process.argv[2]);
const history = Array.from({ length: EVENTS }, (_, index) => ({ role: 'user', content: messageText(index) }));
const times: number[] = [];
for (let index = 0; index < 2_000; index++) {
  const start = performance.now();
  history.push({ role: 'user', content: messageText(index) });
  const request = history.slice();
  history.push({ role: 'assistant', content: `Understood, and noted. ${request.length}` });
  times.push(performance.now() - start);
}
report({ p50: percentile(times, 0.5), p99: percentile(times, 0.99) });
