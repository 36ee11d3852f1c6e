/** A list that an answer holds, of which one answer may have a part: all of it. `get` is told how many to skip. */
export async function getPages<K extends string, T extends Record<K, readonly unknown[]>>(
  name: K,
  get: (skip: number | undefined) => Promise<T & { next?: number | null }>,
): Promise<T> {
  const first = await get(undefined);
  const list: unknown[] = [...first[name]];
  for (let { next } = first; typeof next === 'number';) {
    const page = await get(next);
    list.push(...page[name]);
    next = page.next;
  }
  const { next: _, ...whole } = { ...first, [name]: list };
  return whole as unknown as T;
}
