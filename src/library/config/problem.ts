import { unknownName } from '../../events/index.ts';

/** Something wrong in a definition, with its path. */
export interface Problem {
  path: PropertyKey[];
  message: string;
}

/** The problem of an entry whose name an earlier entry has. */
export function usedTwice(
  names: readonly (string | undefined)[],
  index: number,
  path: PropertyKey[],
): Problem[] {
  const name = names[index];
  const isRepeated = name !== undefined && names.indexOf(name) !== index;
  return isRepeated ? [{ path, message: `"${name}" is used twice` }] : [];
}

export function unknownAgent(
  id: string,
  known: readonly (string | undefined)[],
  path: PropertyKey[],
): Problem {
  const ids = [...new Set(known)].filter((each) => each !== undefined);
  return { path, message: unknownName(`there is no agent "${id}"`, id, ids) };
}
