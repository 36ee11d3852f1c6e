/** A load that somebody else has published or met, played with Troupe and beside it. */
export interface Load {
  /** For `--only`. */
  name: string;
  /** What is done, in a few words. */
  title: string;
  /** The size that was published, and one that only shows that the scripts run. */
  size: number;
  short: number;
  /** Whether it needs the transcripts of `--data`. */
  needsData?: true;
  /** Troupe first. */
  contenders: readonly Contender[];
  figures: readonly Figure[];
}

/** One that plays a load: `SCRIPT MODE SIZE DIR DATA`, whose last line is an object of numbers. */
export interface Contender {
  name: string;
  /** Below `bench/peers/loads`. */
  script: string;
  /** Which of several ways the script plays it. */
  mode?: string;
  needs: Need;
}

/** What has to be installed for it. */
export type Need = 'troupe' | 'nothing' | 'mastra' | 'langgraph' | 'temporal';

export interface Figure {
  /** In the object that the script prints. */
  key: string;
  title: string;
  /** What the source has measured. */
  published?: string;
}
