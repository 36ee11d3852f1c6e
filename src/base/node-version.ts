/** The oldest Node with SQLite, with types in agents files, and with everything else that the sources and their packages use. */
const LEAST = [22, 19] as const;

/** Why this Node cannot run Troupe, and what to do; null if it can. Older ones must be able to run this file. */
export function nodeProblem(version: string): string | null {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [leastMajor, leastMinor] = LEAST;
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return null;
  return `Troupe needs Node ${LEAST.join('.')} or newer, and this is Node ${version}: install a newer one from https://nodejs.org and run this again`;
}
