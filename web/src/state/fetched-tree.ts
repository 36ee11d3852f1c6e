import { useEffect } from 'preact/hooks';
import type { Tree } from '../../../src/library/projection/tree.ts';
import { api } from './api.ts';
import { ANY, type Fetched, refetch, useFetched } from './fetched.ts';
import { followStream, settled } from './follow-stream.ts';

/** Threads at work have many events; within this time, ms, all of them lead to one read of the tree. */
const NEWS_MS = 1_000;

/** The turns and tasks of a conversation over all threads, read again after events of any thread. Null fetches nothing. */
export function useTree(id: string | null): Fetched<Tree> {
  const key = id === null ? null : `tree ${id}`;
  const found = useFetched(key, ANY, () => api.tree(id ?? ''));
  const isLive = found.state === 'there' && found.value.nodes.some(({ state }) => state === 'running');
  useEffect(() => {
    if (id === null || key === null || !isLive) return;
    const news = settled(NEWS_MS, () => refetch(key));
    const leave = followStream({ threadsOf: id }, news.soon);
    return () => {
      leave();
      news.stop();
    };
  }, [id, key, isLive]);
  return found;
}
