//! `tanda throttle bucket`.

use clap::Args;
use tanda_client::admin::BucketId;

use super::{bucket_json, bucket_name, counts, limit, room_moment};
use crate::{failure::Failure, output::Output, table::grouped, target::TargetArgs};

#[derive(Args, Debug)]
#[command(after_help = "\
A bucket without deliveries in its windows is shown as empty, whether or not it ever had any.")]
pub(crate) struct BucketArgs {
    /// The throttle, by the name under which consumers declare it
    name: String,
    /// The values of its key, one per part; none for a throttle without a key
    #[arg(value_name = "VALUE")]
    values: Vec<String>,
    /// The bucket that messages without the key share
    #[arg(long, conflicts_with = "values")]
    shared: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: BucketArgs, before: TargetArgs) -> Result<(), Failure> {
    let throttle = args.name;
    let target = args.target.or(before);
    let admin = target.connect().await?.admin();
    let failed = |error| Failure::request(format!("read throttle {throttle:?}"), &error);
    let summary = admin
        .throttle_stats(&throttle, 0)
        .await
        .map_err(failed)?
        .summary;
    let parts = summary.key.parts.len();
    if !args.shared && args.values.len() != parts {
        return Err(Failure::Usage(format!(
            "throttle {throttle:?} is keyed by {}, so a bucket is named by {parts} values, not {}",
            match parts {
                0 => "nothing".to_owned(),
                _ => crate::key_parts::shown(&summary.key),
            },
            args.values.len(),
        )));
    }
    let id = if args.shared {
        BucketId::Shared
    } else {
        BucketId::Values(args.values)
    };
    let bucket = admin
        .throttle_bucket(&throttle, &id)
        .await
        .map_err(failed)?;
    let mut out = Output::new();
    if target.json {
        out.document(&bucket_json(&bucket))?;
        return out.flush();
    }
    out.line(format_args!("{:<22}{}", "bucket", bucket_name(&bucket.id)))?;
    for (limit_of, count) in summary.limits.iter().zip(counts(&bucket, &summary)) {
        let label = format!("at most {}", limit(limit_of));
        out.line(format_args!("{label:<22}{count}"))?;
    }
    out.line(format_args!(
        "{:<22}{}",
        "messages waiting",
        grouped(bucket.waiting)
    ))?;
    out.line(format_args!("{:<22}{}", "room", room_moment(&bucket)))?;
    out.flush()
}
