//! Which backups of a store are retained: the newest ones, and the newest of each of the last days, weeks and months.

use std::collections::HashSet;

/// The rules for the backups that are retained. A backup is retained if at least one rule retains it; 0 switches a
/// rule off. Without rules, all backups are retained. Days, weeks (from Monday, as in ISO 8601) and months are in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Number of newest backups that are retained.
    pub last: u32,
    /// Number of last days with backups, of each of which the newest backup is retained.
    pub daily: u32,
    /// The same, for weeks in place of days.
    pub weekly: u32,
    /// The same, for months in place of days.
    pub monthly: u32,
}

impl Retention {
    /// Whether all backups are retained.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The reasons to retain each of the backups, whose times are given from the newest to the oldest; none if it is to be
    /// removed. The newest backup is always retained.
    pub(crate) fn reasons(&self, newest_first: &[BackupTime]) -> Vec<Vec<String>> {
        let mut reasons: Vec<Vec<String>> = vec![Vec::new(); newest_first.len()];
        if let Some(newest) = reasons.first_mut() {
            newest.push("newest".to_owned());
        }
        for (place, of_one) in reasons.iter_mut().enumerate() {
            if place < self.last as usize {
                of_one.push(format!("last {}", place + 1));
            }
        }
        let rules: [(&str, u32, Period); 3] = [
            ("daily", self.daily, |time| &time.day),
            ("weekly", self.weekly, |time| &time.week),
            ("monthly", self.monthly, |time| &time.month),
        ];
        for (rule, number, period) in rules {
            // In the order of the backups, so that those dated by a clock that was ahead are removed in time.
            let mut found: HashSet<&str> = HashSet::new();
            for (time, of_one) in newest_first.iter().zip(&mut reasons) {
                if found.len() < number as usize && found.insert(period(time)) {
                    of_one.push(format!("{rule} {}", period(time)));
                }
            }
        }
        reasons
    }
}

/// Selects the day, the week or the month of a backup.
type Period = fn(&BackupTime) -> &str;

/// The day, the week and the month of a backup, in UTC. Their texts have the order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BackupTime {
    /// The day, such as `2026-01-31`.
    day: String,
    /// The week, such as `2026-W05`.
    week: String,
    /// The month, such as `2026-01`.
    month: String,
}

impl BackupTime {
    /// Reads the time of a manifest, such as `2026-01-31T12:00:00.000000Z`; `None` if it is not a time.
    pub(crate) fn parse(created: &str) -> Option<Self> {
        let at: jiff::Timestamp = created.parse().ok()?;
        let date = at.to_zoned(jiff::tz::TimeZone::UTC).date();
        let week = date.iso_week_date();
        Some(Self {
            day: date.to_string(),
            week: format!("{:04}-W{:02}", week.year(), week.week()),
            month: format!("{:04}-{:02}", date.year(), date.month()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(times: &[&str]) -> Vec<BackupTime> {
        times.iter().map(|time| BackupTime::parse(time).unwrap()).collect()
    }

    #[test]
    fn each_rule_keeps_the_newest_of_its_periods() {
        let all = times(&[
            "2026-11-28T19:00:00.000001Z",
            "2026-11-28T07:00:00.000001Z",
            "2026-11-27T23:59:59.999999Z",
            "2026-11-23T00:00:00Z",
            "2026-11-22T23:00:00Z",
            "2026-10-31T10:00:00Z",
            "2026-01-01T10:00:00Z",
            "2025-12-29T10:00:00Z",
        ]);
        let kept = |rules: Retention| -> Vec<usize> {
            let reasons = rules.reasons(&all);
            (0..all.len()).filter(|place| !reasons[*place].is_empty()).collect()
        };
        let none = Retention::default();
        assert!(none.is_none());
        assert_eq!(kept(Retention { last: 2, ..none }), [0, 1]);
        assert_eq!(kept(Retention { last: 99, ..none }).len(), 8);
        assert_eq!(kept(Retention { daily: 3, ..none }), [0, 2, 3]);
        // 2026-11-23 is a Monday; 2025-12-29 is in the first week of 2026.
        assert_eq!(kept(Retention { weekly: 2, ..none }), [0, 4]);
        assert_eq!(kept(Retention { weekly: 4, ..none }), [0, 4, 5, 6]);
        assert_eq!(kept(Retention { monthly: 3, ..none }), [0, 5, 6]);
        assert_eq!(kept(Retention { monthly: 9, ..none }), [0, 5, 6, 7]);
        let union = Retention { last: 2, daily: 2, weekly: 1, monthly: 2 };
        assert_eq!(kept(union), [0, 1, 2, 5]);
        assert_eq!(
            union.reasons(&all)[0],
            ["newest", "last 1", "daily 2026-11-28", "weekly 2026-W48", "monthly 2026-11"]
        );
    }

    #[test]
    fn the_newest_is_kept_whatever_the_clock_was() {
        // The clock was ahead when the second one was made.
        let all = times(&["2026-11-28T19:00:00Z", "2099-01-01T00:00:00Z", "2026-11-28T18:00:00Z"]);
        let reasons = Retention { daily: 1, ..Retention::default() }.reasons(&all);
        assert_eq!(reasons, [vec!["newest", "daily 2026-11-28"], vec![], vec![]]);
    }

    #[test]
    fn backups_of_a_clock_that_was_ahead_age_out() {
        let all = times(&[
            "2026-11-29T19:00:00Z",
            "2026-11-28T19:00:00Z",
            "2099-01-02T00:00:00Z",
            "2099-01-01T00:00:00Z",
        ]);
        let none = Retention::default();
        for rules in [Retention { daily: 2, ..none }, Retention { monthly: 1, ..none }] {
            let reasons = rules.reasons(&all);
            assert!(
                !reasons[0].is_empty() && reasons[2..].iter().all(Vec::is_empty),
                "{reasons:?}"
            );
        }
        assert_eq!(Retention { daily: 2, ..none }.reasons(&all)[1], ["daily 2026-11-28"]);
    }

    #[test]
    fn days_are_those_of_utc() {
        let time = BackupTime::parse("2026-12-31T23:30:00-01:00").unwrap();
        assert_eq!((&*time.day, &*time.week, &*time.month), ("2027-01-01", "2026-W53", "2027-01"));
        assert_eq!(BackupTime::parse("yesterday"), None);
    }
}
